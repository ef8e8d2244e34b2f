"""Build strategies from their names or classes and the options of a run."""

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
_RESERVED = ("x0", "seed", "direction", "perturbation")


def build_strategy(
    strategy: str | StrategyFactory,
    start: NDArray[np.floating],
    options: Mapping[str, Any],
    advice: str = "pass it in strategy_options",
    *,
    ranks: bool = False,
) -> Strategy:
    """Return a strategy with its center at ``start``.

    Args:
        strategy: Name or factory. Arguments fixed by a ``functools.partial`` are not changed.
        start: Start of the center, shape (dimension,).
        options: Arguments of the factory. Those that are None have its own defaults.
        advice: How to pass a further argument, for error messages.
        ranks: True if the strategy will receive ranks as fitness. If it uses centered ranks by default, it
            then uses these ranks unchanged.

    Raises:
        InputError: The strategy is unknown, does not accept one of the options, or does not accept ranks.
    """
    factory = factory_of(strategy)
    name = called(strategy)
    fixed = fixed_by(factory)
    if twice := [key for key in fixed if key not in _ALWAYS and options.get(key) is not None]:
        raise InputError(f"strategy {name} has {twice[0]} already; set it in one place only")
    arguments = {key: value for key, value in options.items() if value is not None and key not in fixed}
    shaping = parameters_of(factory).get("shaping")
    if ranks and "shaping" not in {*arguments, *fixed} and shaping and shaping.default == "centered-ranks":
        arguments["shaping"] = "raw"
    check_call(factory, arguments, _ALWAYS, f"strategy {name}", advice)
    seed = int(seeds(seed_number(arguments.get("seed", 0)), Stream.STRATEGY))
    with generators_seeded(seed):
        made = factory(start, **arguments)
    if not isinstance(made, Strategy):
        raise InputError(f"strategy {name} returned a {type(made).__name__}, not an escalade Strategy")
    if made.dimension != len(start):
        raise InputError(f"strategy {name} has {made.dimension} parameters, not {len(start)}")
    if ranks:
        refuse_ranks(made)
    return made


def joined(options: Mapping[str, Any], further: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a strategy, and its ``strategy_options``.

    Raises:
        InputError: ``strategy_options`` has the name of an option.
    """
    for name in further:
        if name in options or name in _RESERVED:
            raise InputError(f"`strategy_options` {name} is an option of its own; set that option instead")
    return {**options, **further}


def factory_of(strategy: str | StrategyFactory) -> StrategyFactory:
    """Return a strategy's factory, by name or unchanged.

    Raises:
        InputError: The name is unknown, or has options, which only the command line accepts.
    """
    if isinstance(strategy, str) and (name := strategy.partition(":")[0]) != strategy and name in STRATEGIES:
        kind = STRATEGIES[name].home.rpartition(":")[2]
        raise InputError(
            f"`strategy` {strategy!r} is a name with options; pass {name!r} and the options as arguments, "
            f"or a functools.partial of {kind}"
        )
    found: StrategyFactory = (
        strategy if callable(strategy) else named("strategy", strategy, STRATEGIES).load()
    )
    return found


def takes(strategy: str | StrategyFactory, keyword: str) -> bool:
    """Return True if a strategy accepts an argument ``keyword`` that is not fixed already."""
    factory = factory_of(strategy)
    known = keywords_of(factory)
    return keyword not in fixed_by(factory) and (known is None or keyword in known)


def refuse_ranks(strategy: Strategy) -> None:
    """Check that a strategy works with ranks as fitness.

    Raises:
        InputError: The strategy compares the fitness of different generations.
    """
    if strategy.compares_generations:
        raise InputError(
            f"{type(strategy).__name__} compares a generation's fitness with earlier generations', but a "
            "novelty search ranks members within one generation; use a different strategy"
        )
