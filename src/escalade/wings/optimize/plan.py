"""The plan of a search: its options, its strategy, and the schedule of its restarts."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from escalade.errors import InputError
from escalade.strategies.base import Direction, StrategyFactory
from escalade.strategies.ranking import default_population
from escalade.strategies.registry import STRATEGIES
from escalade.support.imports import called
from escalade.support.keywords import keywords_of
from escalade.support.numbers import counted, population_number, real_number, whole_number
from escalade.support.registry import named
from escalade.training.strategy import factory_of
from escalade.wings.optimize.space import EarlierPoints, SearchSpace, Start

LARGEST_DOUBLING = 9
"""The most times that the population doubles."""
_FEW, _MANY = 100, 1000  # parameters
_LONG = 1000  # evaluations for each parameter


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search, as in :func:`escalade.optimize`.

    Raises:
        InputError: one is impossible; the message names it.
    """

    strategy: str | StrategyFactory
    direction: Direction
    population: int | None
    budget: int | None
    target: float | None
    tolerance: float
    restarts: str | None

    def __post_init__(self) -> None:
        if self.budget is not None:
            whole_number(self.budget, "budget", 1)
        if self.population is not None:
            population_number(self.population, 2)
        if self.target is not None:
            real_number(self.target, "target")
        if not real_number(self.tolerance, "tolerance") > 0:
            raise InputError(f"tolerance {self.tolerance} must be above 0")


Restarts = Generator[Start, int, None]
"""A generator of searches, which is sent the number of evaluations that the last one used."""


class SearchPlan(NamedTuple):
    """The strategy of a function's searches, and when they begin again."""

    name: str
    """The strategy's name."""
    note: str
    """The reason for the strategy that ``auto`` took; empty if the user named one."""
    factory: StrategyFactory
    starts: Restarts


def plan_search(options: SearchOptions, x0: Any, space: SearchSpace) -> SearchPlan:
    """Plan the searches of one function from ``x0`` in ``space``.

    Raises:
        InputError: options do not fit together; the message names them.
    """
    strategy, note = options.strategy, ""
    known = isinstance(x0, EarlierPoints)
    if strategy == "auto":
        strategy, why = choose(
            space.dimension,
            options.budget,
            earlier=known,
            restarts=options.restarts is not None,
            population=options.population,
        )
        note = f"auto takes {strategy}: {why}"
    if isinstance(strategy, type):  # a class of ours goes by its name
        home = f"{strategy.__module__}:{strategy.__qualname__}"
        strategy = next((name for name, entry in STRATEGIES.items() if entry.home == home), strategy)
    factory = factory_of(strategy)
    taken = keywords_of(factory)
    if known and taken is not None and "covariance" not in taken:
        raise InputError("EarlierPoints are for strategy cma-es: give a vector as x0")
    return SearchPlan(called(strategy), note, factory, _restarts(strategy, options, space))


def _restarts(strategy: str | StrategyFactory, options: SearchOptions, space: SearchSpace) -> Restarts:
    if options.restarts is None:
        return once(options.population)
    if callable(strategy) or not STRATEGIES[strategy].restarts:
        able = " or ".join(sorted(name for name, entry in STRATEGIES.items() if entry.restarts))
        raise InputError(f"restarts={options.restarts!r} is for strategy {able}: leave it out")
    first = default_population(space.dimension) if options.population is None else options.population
    return named("restarts", options.restarts, RESTARTS)(first, space.rng)


def choose(
    dimension: int, budget: int | None, *, earlier: bool, restarts: bool, population: int | None = None
) -> tuple[str, str]:
    """Return the name of the strategy that ``auto`` takes, and the reason in a few words.

    The thresholds are measured in ``benchmarks/strategies.md``: a matrix is worth its evaluations up to a few
    hundred parameters, and beyond if the budget is long.

    Args:
        dimension: number of parameters.
        budget: number of evaluations; None for no limit.
        earlier: whether there are earlier points.
        restarts: whether searches begin again.
        population: members a generation, if they are given; cr-fm-nes takes pairs of them.
    """
    size = counted(dimension, "parameter")
    if earlier:
        return "cma-es", "only it takes earlier points"
    if dimension <= _FEW:
        return "cma-es", f"{size} are few enough for a matrix"
    if restarts:
        name = "ma-es" if dimension <= _MANY else "sep-cma-es"
        return name, f"it can begin again, and {size} are too many for cma-es"
    if dimension <= _MANY and budget is not None and budget >= _LONG * dimension:
        return "ma-es", f"the budget is long enough to learn a matrix of {size}"
    if population is not None and population % 2:
        return "lm-ma-es", f"{size} are too many for a matrix, and {population} members are no pairs"
    return "cr-fm-nes", f"{size} are too many for a matrix"


def once(population: int | None) -> Restarts:
    """Yield one search, and no restart."""
    yield Start(population)


def ipop(population: int, rng: np.random.Generator) -> Restarts:
    """Double the population at each restart.

    Auger and Hansen 2005, "A Restart CMA Evolution Strategy With Increasing Population Size", CEC 2005.

    Args:
        population: of the first search.
        rng: not used; the schedule is fixed.
    """
    for doublings in range(LARGEST_DOUBLING + 1):
        yield Start(population * 2**doublings)


def bipop(population: int, rng: np.random.Generator) -> Restarts:
    """Two kinds of restarts in turns, whichever has used less: small populations, and large ones.

    Hansen 2009, "Benchmarking a BI-population CMA-ES on the BBOB-2009 function testbed", GECCO 2009, with the
    numbers of Hansen's pycma. The first search counts as a small one. The large populations double. A small
    one has ``d * (l / d)**(u**2)`` members (d the default, l the last large population), a first sigma
    smaller by ``10**(-2 * v)`` (u and v uniform in [0, 1]), and at most half of all evaluations of the large
    ones.

    Args:
        population: of the first search.
        rng: where the sizes of small populations come from.
    """
    small = yield Start(population)  # evaluations used by each kind
    large = doublings = 0
    while True:
        if small < large:
            size = int(population * 2.0 ** (doublings * rng.uniform() ** 2))
            factor = 10 ** (-2 * rng.uniform())
            small += yield Start(size, factor, max(large // 2, size))
        elif doublings < LARGEST_DOUBLING:
            doublings += 1
            large += yield Start(population * 2**doublings)
        else:
            return


RESTARTS: Final[dict[str, Callable[[int, np.random.Generator], Restarts]]] = {"ipop": ipop, "bipop": bipop}
