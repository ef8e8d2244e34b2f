"""Stopping rules of a search: convergence, stagnation and numerical failure.

These are the criteria of Hansen's CMA-ES (Hansen 2016, arXiv 1604.00772, appendix B.3; Hansen 2009,
"Benchmarking a BI-population CMA-ES on the BBOB-2009 function testbed", section 2.4). The numbers of
generations for stagnation and for the limit are those of pycma. The rules about fitness and standard
deviations apply to every strategy.
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
"""Growth of a standard deviation that stops a search: sigma was far too small, or the search diverges."""
_LOOKS = 10  # generations between checks for stagnation, which sort hundreds of numbers
_YOUNG = 500  # generations before the first check for stagnation


class StopRules:
    """Stopping rules of one search, from its first generation on.

    Args:
        strategy: strategy of the search. More rules apply to strategies that adapt a covariance.
        tolerance: the search stops when the standard deviations have shrunk to this fraction of the initial
            ones (``tolx``), when the fitness of the last generations differs by less than this (``tolfun``),
            or when the best fitness of the last generations differs by less than a tenth of this
            (``tolfunhist``).
        boxed: mask of the parameters with two bounds, shape (dimension,). Their standard deviations are
            capped and cannot diverge, so ``tolxup`` does not apply to them.
    """

    drifting = False
    """True if the function changes during the search, which can look like stagnation."""

    def __init__(self, strategy: Strategy, tolerance: float, boxed: NDArray[np.bool_] | bool = False) -> None:
        n, size = strategy.dimension, strategy.population_size
        self._strategy = strategy
        self._free = ~np.broadcast_to(boxed, (n,))
        self._tolerance = tolerance
        self._first = _deviations(strategy).max()
        self._shaped = False  # True once the strategy has a condition number
        # Generations between checks of the condition, for which some strategies decompose a matrix.
        self._every = max(1, n // 10) if getattr(strategy, "decomposes", False) else 1
        self._recent = 10 + int(np.ceil(30 * n / size))
        self._patience = int(100 + 100 * n**1.5 / size)
        self.generation_limit = 100 + int(150 * (n + 3) ** 2 / np.sqrt(size))
        self._best: list[float] = []
        self._median: list[float] = []

    def check(self, fitness: Array) -> str | None:
        """Return the reason to stop after a generation, or None.

        Args:
            fitness: fitness of the generation, smaller is better, shape (population,).
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
        # With elites, an unchanged best value only means that no child is better yet.
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
        """Return whether neither the best nor the median fitness has improved for a long time."""
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
