"""Plan of a search: its options, its strategy, and the schedule of its restarts."""

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
"""Maximum number of times that the population doubles."""
_FEW, _MANY = 100, 1000  # parameters
_LONG = 1000  # evaluations per parameter


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search, as in :func:`escalade.optimize`.

    Raises:
        InputError: an option is invalid; the message names it.
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
"""Generator of searches. It is sent the number of evaluations that the last search used."""


class SearchPlan(NamedTuple):
    """Strategy and restarts of the searches on a function."""

    name: str
    """Name of the strategy."""
    note: str
    """Reason for the strategy selected by ``auto``; empty if the user named one."""
    factory: StrategyFactory
    starts: Restarts


def plan_search(options: SearchOptions, x0: Any, space: SearchSpace) -> SearchPlan:
    """Plan the searches of one function from ``x0`` in ``space``.

    Raises:
        InputError: options exclude each other; the message names them.
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
        note = f"auto selected {strategy}: {why}"
    if isinstance(strategy, type):  # map classes of Escalade to their names
        home = f"{strategy.__module__}:{strategy.__qualname__}"
        strategy = next((name for name, entry in STRATEGIES.items() if entry.home == home), strategy)
    factory = factory_of(strategy)
    taken = keywords_of(factory)
    if known and taken is not None and "covariance" not in taken:
        raise InputError("EarlierPoints needs strategy cma-es; use it, or pass a vector as x0")
    return SearchPlan(called(strategy), note, factory, _restarts(strategy, options, space))


def _restarts(strategy: str | StrategyFactory, options: SearchOptions, space: SearchSpace) -> Restarts:
    if options.restarts is None:
        return once(options.population)
    if callable(strategy) or not STRATEGIES[strategy].restarts:
        able = " or ".join(sorted(name for name, entry in STRATEGIES.items() if entry.restarts))
        raise InputError(f"restarts={options.restarts!r} needs strategy {able}; use one of them or remove it")
    first = default_population(space.dimension) if options.population is None else options.population
    return named("restarts", options.restarts, RESTARTS)(first, space.rng)


def choose(
    dimension: int, budget: int | None, *, earlier: bool, restarts: bool, population: int | None = None
) -> tuple[str, str]:
    """Return the name of the strategy that ``auto`` selects, and a short reason.

    The thresholds rest on ``benchmarks/strategies.md``: learning a covariance matrix pays off up to a few
    hundred parameters, and above that with a long budget.

    Args:
        dimension: number of parameters.
        budget: number of evaluations; None for no limit.
        earlier: ``x0`` is :class:`EarlierPoints`.
        restarts: searches restart.
        population: members per generation, or None for the default. cr-fm-nes needs an even number.
    """
    size = counted(dimension, "parameter")
    if earlier:
        return "cma-es", "only it supports earlier points"
    if dimension <= _FEW:
        return "cma-es", f"{size} are few enough for a covariance matrix"
    if restarts:
        name = "ma-es" if dimension <= _MANY else "sep-cma-es"
        return name, f"it supports restarts, and {size} are too many for cma-es"
    if dimension <= _MANY and budget is not None and budget >= _LONG * dimension:
        return "ma-es", f"the budget is long enough to learn a covariance matrix of {size}"
    if population is not None and population % 2:
        return "lm-ma-es", f"{size} are too many for a covariance matrix, and the population is odd"
    return "cr-fm-nes", f"{size} are too many for a covariance matrix"


def once(population: int | None) -> Restarts:
    """Yield one search without restarts."""
    yield Start(population)


def ipop(population: int, rng: np.random.Generator) -> Restarts:
    """Double the population at each restart.

    Auger and Hansen 2005, "A Restart CMA Evolution Strategy With Increasing Population Size", CEC 2005.

    Args:
        population: population of the first search.
        rng: unused; the schedule is fixed.
    """
    for doublings in range(LARGEST_DOUBLING + 1):
        yield Start(population * 2**doublings)


def bipop(population: int, rng: np.random.Generator) -> Restarts:
    """Alternate between small and large populations; the kind with fewer evaluations so far comes next.

    Hansen 2009, "Benchmarking a BI-population CMA-ES on the BBOB-2009 function testbed", GECCO 2009, with the
    constants of Hansen's pycma. The first search counts as small. Large populations double each time. A small
    population has ``d * (l / d)**(u**2)`` members, where d is the default and l the last large population.
    Its first sigma is multiplied by ``10**(-2 * v)``; u and v are uniform in [0, 1]. Its search takes at most
    half of all evaluations of the large ones.

    Args:
        population: population of the first search.
        rng: generator for u and v.
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
