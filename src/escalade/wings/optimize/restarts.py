"""Restarts of a search after it has converged, with larger and with smaller populations."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final

import numpy as np

LARGEST_DOUBLING = 9
"""The most times that the population doubles."""


@dataclass(frozen=True)
class Start:
    """The settings one search is started with."""

    population: int | None
    """Members a generation; None is the strategy's default."""
    sigma_factor: float = 1.0
    """The factor of the first sigma."""
    budget: int | None = None
    """Evaluations after which this search gives way to the next one."""


Restarts = Generator[Start, int, None]
"""A generator of searches, the first with the given population.

The caller sends back how many evaluations the last search used.
"""


def once(population: int | None) -> Restarts:
    """One search, and no restart."""
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
    """Two kinds of restarts in turns, whichever has used less: large populations, and small ones.

    Hansen 2009, "Benchmarking a BI-population CMA-ES on the BBOB-2009 function testbed", GECCO 2009. The
    large ones double. A small one has ``d * (l / (2 * d))**(u**2)`` members (d the default, l the last
    large population), a first sigma smaller by ``10**(-2 * v)`` (u and v uniform in [0, 1]), and at
    most half the evaluations of the last large search.

    Args:
        population: of the first search.
        rng: where the sizes of small populations come from.
    """
    large = last_large = yield Start(population)  # evaluations used by the large ones, and by the last
    small = doublings = 0
    while True:
        if doublings > 0 and small < large:
            size = int(population * (2.0**doublings / 2) ** (rng.uniform() ** 2))
            factor = 10 ** (-2 * rng.uniform())
            small += yield Start(size, factor, max(last_large // 2, size))
        elif doublings < LARGEST_DOUBLING:
            doublings += 1
            last_large = yield Start(population * 2**doublings)
            large += last_large
        else:
            return


RESTARTS: Final[dict[str, Callable[[int, np.random.Generator], Restarts]]] = {"ipop": ipop, "bipop": bipop}
