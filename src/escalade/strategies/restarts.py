"""Restarts of CMA-ES after it has converged, with larger and with smaller populations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

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


class Restarts(Protocol):
    """The rule that says which search comes next."""

    def starts(self) -> Iterator[Start]:
        """One after the other; the first has the population that was given."""
        ...

    def used(self, evaluations: int) -> None:
        """Say how many evaluations the search just started has taken, once it has ended."""
        ...


class IPOP:
    """Double the population at each restart.

    Auger and Hansen 2005, "A Restart CMA Evolution Strategy With Increasing Population Size", CEC 2005.

    Args:
        population: of the first search.
        rng: not used; the schedule is fixed.
    """

    def __init__(self, population: int, rng: np.random.Generator) -> None:
        self._population = population

    def starts(self) -> Iterator[Start]:
        """One after the other."""
        for doubling in range(LARGEST_DOUBLING + 1):
            yield Start(self._population * 2**doubling)

    def used(self, evaluations: int) -> None:
        """Nothing depends on it."""


class BIPOP:
    """Two kinds of restarts in turns, whichever has used less: large populations, and small ones.

    Hansen 2009, "Benchmarking a BI-population CMA-ES on the BBOB-2009 function testbed", GECCO 2009. The
    large ones double. A small one has ``d * (l / (2 * d))**(u**2)`` members (d the default, l the last
    large population), a first sigma smaller by ``10**(-2 * v)`` (u and v uniform in [0, 1]), and at
    most half the evaluations of the last large search.

    Args:
        population: of the first search.
        rng: where the sizes of small populations come from.
    """

    def __init__(self, population: int, rng: np.random.Generator) -> None:
        self._population = population
        self._rng = rng
        self._large, self._small = 0, 0  # evaluations used by either kind
        self._last_large = 0
        self._is_small = False

    def starts(self) -> Iterator[Start]:
        """One after the other."""
        yield Start(self._population)
        doublings = 0
        while True:
            self._is_small = doublings > 0 and self._small < self._large
            if self._is_small:
                ratio = 2.0**doublings / 2
                size = int(self._population * ratio ** (self._rng.uniform() ** 2))
                factor = 10 ** (-2 * self._rng.uniform())
                yield Start(size, factor, max(self._last_large // 2, size))
            else:
                doublings += 1
                if doublings > LARGEST_DOUBLING:
                    return
                yield Start(self._population * 2**doublings)

    def used(self, evaluations: int) -> None:
        """Count the search just ended for its kind."""
        if self._is_small:
            self._small += evaluations
        else:
            self._large += evaluations
            self._last_large = evaluations


RESTARTS: Final[dict[str, type[IPOP] | type[BIPOP]]] = {"ipop": IPOP, "bipop": BIPOP}
