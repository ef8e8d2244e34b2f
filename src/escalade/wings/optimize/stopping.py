"""The rules by which a search on a function has converged or cannot go on.

The criteria of Hansen's CMA-ES (Hansen 2016, arXiv 1604.00772, appendix B.3; Hansen 2009, "Benchmarking a
BI-population CMA-ES on the BBOB-2009 function testbed", section 2.4), with the numbers of generations that
pycma has for stagnation and for the limit. Those of the fitness and of the standard deviations hold for
every strategy.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from escalade.strategies.base import Strategy
from escalade.strategies.matrix import CONDITION
from escalade.strategies.shaping import usable

Array = NDArray[np.float64]

GROWTH = 1e4
"""A standard deviation that has grown by this factor: sigma was far too small, or the search diverges."""
_LOOKS = 10  # generations from one look at stagnation to the next, which sorts hundreds of numbers
_YOUNG = 500  # generations before which no search stagnates


class StopRules:
    """Watches one search, from its first generation on.

    Args:
        strategy: what searches; those that adapt a covariance stop by more rules than others.
        tolerance: the search stops when the standard deviations are this fraction of the first ones
            (``tolx``), when the fitness of the last generations differs by less than this (``tolfun``),
            or when the best fitness of the last generations differs by less than a tenth of it
            (``tolfunhist``).
        boxed: the parameters whose standard deviation is capped by two bounds, bool of shape (dimension,):
            they may grow from any first value without ``tolxup``, because they cannot diverge.
    """

    drifting = False
    """True if the function changes as the search goes on: it may then seem to stagnate."""

    def __init__(self, strategy: Strategy, tolerance: float, boxed: NDArray[np.bool_] | bool = False) -> None:
        n, size = strategy.dimension, strategy.population_size
        self._strategy = strategy
        self._free = ~np.broadcast_to(boxed, (n,))
        self._tolerance = tolerance
        self._first = _deviations(strategy).max()
        self._shaped = False  # until a look at the condition finds one
        # Generations from one look at the condition to the next: some strategies decompose a matrix for it.
        self._every = max(1, n // 10) if getattr(strategy, "decomposes", False) else 1
        self._recent = 10 + int(np.ceil(30 * n / size))
        self._patience = int(100 + 100 * n**1.5 / size)
        self.generation_limit = 100 + int(150 * (n + 3) ** 2 / np.sqrt(size))
        self._best: list[float] = []
        self._median: list[float] = []

    def check(self, fitness: Array) -> str | None:
        """Return the reason to stop after a generation; None to go on.

        Args:
            fitness: what the generation's members gave, smaller is better, shape (population,).
        """
        ordered = np.sort(fitness[usable(fitness)])
        middle = len(ordered) // 2
        self._best.append(float(ordered[0]) if len(ordered) else math.inf)
        self._median.append(float(ordered[middle] + ordered[~middle]) / 2 if len(ordered) else math.inf)
        found = self._by_fitness(ordered) or self._by_covariance() or self._by_scale()
        if found is None and not self.drifting and self._stagnates():
            return "stagnation"
        if found is None and len(self._best) >= self.generation_limit:
            return "generations"
        return found

    def _by_fitness(self, ordered: Array) -> str | None:
        if len(self._best) < self._recent:
            return None
        recent = self._best[-self._recent :]
        spread = max(recent) - min(recent)
        if len(ordered) and spread < self._tolerance and ordered[-1] - ordered[0] < self._tolerance:
            return "tolfun"
        # The best of a generation stays what it was while elites live on and no child is better yet.
        return "tolfunhist" if spread < self._tolerance / 10 and not self._strategy.elitist else None

    def _by_scale(self) -> str | None:
        deviations, center = _deviations(self._strategy), self._strategy.center.double().numpy()
        largest = deviations.max()
        if largest < self._tolerance * self._first:
            return "tolx"
        if largest > GROWTH * self._first and (deviations[self._free] > GROWTH * self._first).any():
            return "tolxup"
        return "noeffect" if (center == center + 0.2 * deviations).any() else None

    def _by_covariance(self) -> str | None:
        if len(self._best) % self._every:
            return None
        condition = self._strategy.condition
        self._shaped = condition is not None
        return "condition" if condition is not None and condition > CONDITION else None

    def _stagnates(self) -> bool:
        """Return whether neither the best nor the median fitness is better than it was long ago."""
        count = len(self._best)
        part = max(self._patience // 2, count // 10)
        if not self._shaped or count % _LOOKS or count <= max(_YOUNG, 2 * part):
            return False
        worse = (
            np.median(values[-part:]) >= np.median(values[-2 * part : -part])
            for values in (self._best, self._median)
        )
        return all(worse) and count - int(np.argmin(self._best)) > self._patience / 2


def _deviations(strategy: Strategy) -> Array:
    scale = np.asarray(strategy.scale, dtype=np.float64)
    return scale if scale.ndim else np.full(strategy.dimension, scale)
