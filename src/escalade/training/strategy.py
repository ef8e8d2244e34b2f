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
from escalade.support.keywords import check_call, fixed_by, keywords_of, parameters_of
from escalade.support.numbers import seed_number
from escalade.support.registry import named

_ALWAYS = ("population", "sigma", "seed", "direction")
_GIVEN = ("x0", "seed", "direction", "perturbation")


def build_strategy(
    strategy: str | StrategyFactory,
    start: NDArray[np.floating],
    options: Mapping[str, Any],
    mend: str = "give it in strategy_options",
    *,
    ranks: bool = False,
) -> Strategy:
    """The strategy with its centre at ``start``; options that are None are left to its own defaults.

    What a ``functools.partial`` fixes stays as it is. ``mend`` says in an error how a further argument is
    given. A strategy that takes centred ranks, and is to be told ``ranks``, takes those as they are.

    Raises:
        InputError: there is no such strategy, it does not take one of the options, or not ``ranks``.
    """
    factory = factory_of(strategy)
    name = called(strategy)
    fixed = fixed_by(factory)
    if twice := [key for key in fixed if key not in _ALWAYS and options.get(key) is not None]:
        raise InputError(f"{twice[0]} is given beside strategy {name}, which has it: choose one")
    given = {key: value for key, value in options.items() if value is not None and key not in fixed}
    shaping = parameters_of(factory).get("shaping")
    if ranks and "shaping" not in {*given, *fixed} and shaping and shaping.default == "centered-ranks":
        given["shaping"] = "raw"
    check_call(factory, given, _ALWAYS, f"strategy {name}", mend)
    seed = int(seeds(seed_number(given.get("seed", 0)), Stream.STRATEGY))
    with generators_seeded(seed):
        made = factory(start, **given)
    if not isinstance(made, Strategy):
        raise InputError(f"strategy {name} made a {type(made).__name__}, not an escalade Strategy")
    if made.dimension != len(start):
        raise InputError(f"strategy {name} has {made.dimension} parameters, not {len(start)}")
    if ranks:
        refuse_ranks(made)
    return made


def joined(options: Mapping[str, Any], further: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a strategy and its ``strategy_options``, none of which is an option by itself.

    Raises:
        InputError: one is.
    """
    for name in further:
        if name in options or name in _GIVEN:
            raise InputError(f"`strategy_options` {name} is an option by itself: give it there")
    return {**options, **further}


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


def takes(strategy: str | StrategyFactory, keyword: str) -> bool:
    """Return whether a strategy takes an argument of this name that it does not have already."""
    factory = factory_of(strategy)
    known = keywords_of(factory)
    return keyword not in fixed_by(factory) and (known is None or keyword in known)


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
