"""The strategy that :func:`escalade.evolve` was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.errors import InputError
from escalade.perturbation import Stream, seeds
from escalade.strategies import Strategy
from escalade.strategies.base import StrategyFactory
from escalade.strategies.registry import STRATEGIES
from escalade.support.generators import generators_seeded
from escalade.support.imports import called
from escalade.support.keywords import check_call, fixed_by, parameters_of
from escalade.support.numbers import seed_number
from escalade.support.registry import named

_ALWAYS = ("population", "sigma", "seed", "direction")


def build_strategy(
    strategy: str | StrategyFactory,
    start: NDArray[np.floating],
    options: dict[str, Any],
    mend: str = "give it in strategy_options",
) -> Strategy:
    """The strategy with its centre at ``start``; options that are None are left to its own defaults.

    What a ``functools.partial`` fixes stays as it is. ``mend`` says in an error how a further argument is
    given.

    Raises:
        InputError: there is no such strategy, or it does not take one of the options.
    """
    factory = factory_of(strategy)
    name = called(strategy)
    fixed = fixed_by(factory)
    given = {key: value for key, value in options.items() if value is not None and key not in fixed}
    check_call(factory, given, _ALWAYS, f"strategy {name}", mend)
    seed = int(seeds(seed_number(given.get("seed", 0)), Stream.STRATEGY))
    with generators_seeded(seed):
        made = factory(start, **given)
    if not isinstance(made, Strategy):
        raise InputError(f"strategy {name} made a {type(made).__name__}, not an escalade Strategy")
    if made.dimension != len(start):
        raise InputError(f"strategy {name} has {made.dimension} parameters, not {len(start)}")
    return made


def check_fixed(strategy: str | StrategyFactory, options: Mapping[str, Any]) -> None:
    """Refuse an option that a ``functools.partial`` fixes as well; those that always have a value give way.

    Raises:
        InputError: one was given twice.
    """
    for name in fixed_by(strategy):
        if name not in _ALWAYS and options.get(name) is not None:
            raise InputError(f"{name} is given beside strategy {called(strategy)}, which has it: choose one")


def kept_ranks(strategy: str | StrategyFactory) -> dict[str, Any]:
    """Options by which a strategy that takes centred ranks takes those that it is told as they are."""
    shaping = parameters_of(factory_of(strategy)).get("shaping")
    return {"shaping": "raw"} if shaping is not None and shaping.default == "centered-ranks" else {}


def factory_of(strategy: str | StrategyFactory) -> StrategyFactory:
    """A strategy's factory, by name or as it is.

    Raises:
        InputError: there is none of that name; options in a text are read from the command line alone.
    """
    if isinstance(strategy, str) and (name := strategy.partition(":")[0]) != strategy and name in STRATEGIES:
        kind = STRATEGIES[name].home.rpartition(":")[2]
        raise InputError(
            f"`strategy` {strategy!r} is a name with options: give {name!r} and the options as arguments, "
            f"or a functools.partial of {kind}"
        )
    found: StrategyFactory = (
        strategy if callable(strategy) else named("strategy", strategy, STRATEGIES).load()
    )
    return found


def refuse_ranks(strategy: Strategy) -> None:
    """Refuse a strategy that is to be told ranks, and compares the fitness of generations.

    Raises:
        InputError: it does.
    """
    if strategy.compares_generations:
        raise InputError(
            f"{type(strategy).__name__} compares a generation's fitness with that of those before, and a "
            "search for novelty gives it ranks within one: use another strategy"
        )
