"""Augmented Lagrangian, which a search minimizes instead of a function with constraints.

Atamna, Auger and Hansen 2017, "Linearly convergent evolution strategies via augmented Lagrangian constraint
handling", FOGA XIV, algorithm 1, with three differences. First, the value and the constraints at the mean are
not evaluated, but estimated by the weighted mean over the better half. Second, multipliers change 2.5 times
as fast. Third, constraints are shifted by half of the generation's standard deviation, estimated from its
quartiles, so that the mean stays inside and some members are feasible. ``benchmarks/constrained.md`` measures
the last two.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from escalade.errors import InputError
from escalade.strategies.ranking import log_weights
from escalade.strategies.shaping import usable

Array = NDArray[np.float64]

_DAMPING = 2.0  # d_gamma; the paper has 5
_K1, _K2 = 3.0, 5.0  # as in the paper
_SHIFT = 0.5  # in standard deviations
_QUARTILES = 1.35  # interquartile range of the standard normal distribution
_ROOM = 0.25  # maximum shift, relative to the largest distance of a feasible point from a constraint


def excess(constraints: Array) -> Array:
    """Return the total constraint violation of each point, shape (n,); NaN if a number is unusable."""
    known = usable(constraints).all(axis=1)
    return np.where(known, np.maximum(constraints, 0).sum(axis=1), np.nan)


class AugmentedLagrangian:
    """Augmented Lagrangian with multipliers and weights that adapt during the search.

    A constraint is a number that must be at most 0. An equality is two constraints: h and -h.

    Args:
        dimension: number of parameters.
    """

    adapted = ("multipliers", "weights", "room", "mean", "value")

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._rate = 2 ** (1 / dimension)  # chi
        self.multipliers, self.weights, self.room, self.mean = (np.empty(0) for _ in range(4))
        """Gamma, omega, largest distance of a feasible point inside, and last mean; shape (constraints,)."""
        self.value = math.nan
        """Last mean value."""

    def merits(self, values: Array, constraints: Array) -> Array:
        """Return the merits of a generation, and adapt the multipliers and weights.

        Args:
            values: values of the function to minimize, shape (n,).
            constraints: constraint values, shape (n, constraints).

        Returns:
            The augmented Lagrangian, shape (n,), smaller is better. It is NaN if a number is NaN or beyond
            1e30. If fewer than two members have usable numbers, for example because the function is undefined
            at infeasible points, the excess is returned instead.

        Raises:
            InputError: the number of constraints has changed.
        """
        beyond = excess(constraints)
        known = usable(values) & ~np.isnan(beyond)
        if known.sum() < 2:
            return beyond
        f, g = values[known], constraints[known]
        if math.isnan(self.value):
            self.multipliers, self.weights, self.room, self.mean = np.zeros((4, g.shape[1]))
        if g.shape[1] != len(self.weights):
            raise InputError(
                f"violations: {g.shape[1]} per point, but {len(self.weights)} before; return the same number "
                "in every generation"
            )
        spread = g.std(axis=0)
        inside = g[beyond[known] == 0]
        self.room = np.maximum(self.room, -inside.min(axis=0, initial=0.0))
        low, high = np.sort(g, axis=0)[[len(g) // 4, -1 - len(g) // 4]]
        g = g + np.minimum(_SHIFT * (high - low) / _QUARTILES, _ROOM * self.room)
        new = (self.weights == 0) & (g > 0).any(axis=0) & (spread > 0)
        self.weights[new] = f.std() / (self._dimension * spread[new] ** 2)
        merits = np.full(len(values), np.nan)
        merits[known] = f + self._penalties(g)
        self._adapt(f, g, merits[known])
        return merits

    def _penalties(self, g: Array) -> Array:
        """Return the sum of the paper's phi over the constraints ``g``, shape (..., constraints)."""
        on = self.weights > 0
        multipliers, weights = self.multipliers[on], self.weights[on]
        reached = np.maximum(g[..., on], -multipliers / weights)
        return np.asarray((multipliers * reached + weights / 2 * reached**2).sum(axis=-1))

    def _adapt(self, f: Array, g: Array, merits: Array) -> None:
        order, by_rank = np.argsort(merits, kind="stable"), log_weights(len(f))
        value, mean = float(by_rank @ f[order]), by_rank @ g[order]
        if not math.isnan(self.value):
            change = abs(value + self._penalties(mean) - self.value - self._penalties(self.mean))
            small = self.weights * mean**2 < _K1 * change / self._dimension
            slow = _K2 * abs(mean - self.mean) < abs(self.mean)
            factors = np.where(small | slow, self._rate**0.25, 1 / self._rate)
            active = self.multipliers + self.weights * mean > 0
            self.multipliers = np.maximum(0, self.multipliers + self.weights * mean / _DAMPING)
            self.weights = np.where(active, self.weights * factors, self.weights)
        self.value, self.mean = value, mean
