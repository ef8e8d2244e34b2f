"""The strategy that ``optimize(strategy="auto")`` takes, and why."""

from __future__ import annotations

from typing import NamedTuple

from escalade.support.numbers import counted

_FEW, _MANY = 100, 1000
_LONG = 1000  # evaluations for each parameter


class Choice(NamedTuple):
    """The name of a strategy, and the reason in a few words."""

    name: str
    why: str


def choose(
    dimension: int, budget: int | None, *, matrix: bool, restarts: bool, population: int | None = None
) -> Choice:
    """The strategy for a function of so many numbers.

    What it goes by is measured in ``benchmarks/strategies.md``: a matrix is worth its evaluations up to a few
    hundred parameters, and beyond where the budget is long.

    Args:
        dimension: parameters.
        budget: evaluations that there are; None for no limit.
        matrix: whether it must be cma-es, as for whole numbers and for points that are known.
        restarts: whether searches begin again.
        population: members a generation, where they are given; cr-fm-nes takes pairs of them.
    """
    size = counted(dimension, "parameter")
    if matrix:
        return Choice("cma-es", "only it takes whole numbers and earlier points")
    if dimension <= _FEW:
        return Choice("cma-es", f"{size} are few enough for a matrix")
    if restarts:
        name = "ma-es" if dimension <= _MANY else "sep-cma-es"
        return Choice(name, f"it can begin again, and {size} are too many for cma-es")
    if dimension <= _MANY and budget is not None and budget >= _LONG * dimension:
        return Choice("ma-es", f"the budget is long enough to learn a matrix of {size}")
    if population is not None and population % 2:
        return Choice("lm-ma-es", f"{size} are too many for a matrix, and {population} members are no pairs")
    return Choice("cr-fm-nes", f"{size} are too many for a matrix")
