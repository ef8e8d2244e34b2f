"""Warm starts: Nomura, Watanabe, Akimoto, Ozaki and Onishi 2021, "Warm starting CMA-ES for hyperparameter
optimization", AAAI, arXiv 2012.06932, section 4.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from escalade.errors import InputError
from escalade.strategies.base import Direction
from escalade.strategies.vectors import detached

Array = NDArray[np.float64]

_SHARE = 0.1  # of the points: the paper's gamma


class EarlierPoints:
    """Points whose values are known, of the same function or one like it: where a search may begin.

    Given to :func:`escalade.optimize` in place of ``x0``. The search begins at the mean of the best tenth of
    the points, with the covariance by which they scatter, plus a third of the first sigma.

    Args:
        points: shape (n, dimension), in the function's own units and within the bounds.
        values: the function's, shape (n,). Points whose value is NaN or infinite are left out.

    Raises:
        InputError: the shapes do not fit, a point is not finite, or no value is.
    """

    def __init__(self, points: ArrayLike, values: ArrayLike) -> None:
        try:
            self.points, self.values = (
                np.array(detached(given), dtype=np.float64) for given in (points, values)
            )
        except (TypeError, ValueError, RuntimeError, OverflowError):
            raise InputError("EarlierPoints takes numbers: points (n, dimension), and values (n,)") from None
        if self.points.ndim != 2 or self.points.size == 0 or self.values.shape != self.points.shape[:1]:
            raise InputError(
                f"points of shape {self.points.shape} and values of shape {self.values.shape} do not fit: "
                "they must be (n, dimension) and (n,)"
            )
        if not np.isfinite(self.points).all():
            raise InputError("points must be finite")
        if not np.isfinite(self.values).any():
            raise InputError("values must have a finite number: there is nothing to begin from")

    def best(self, direction: Direction) -> Array:
        """The best tenth of the points, at least one, the best first: shape (k, dimension)."""
        known = np.isfinite(self.values)
        points, values = self.points[known], self.values[known]
        order = np.argsort(values if direction == "minimize" else -values, kind="stable")
        return np.asarray(points[order[: max(1, math.floor(_SHARE * len(points)))]])


class Beginning(NamedTuple):
    """The first distribution of a search: members are ``center + sigma * N(0, covariance)``."""

    center: Array
    sigma: float
    covariance: Array
    """Shape (dimension, dimension), of determinant 1."""


def beginning(points: Array, spread: float) -> Beginning:
    """The normal distribution nearest to a mixture of one around each point (section 4.2, equation 9).

    Args:
        points: the best ones, shape (k, dimension).
        spread: the standard deviation around each of them: the paper's alpha.
    """
    dimension = points.shape[1]
    center = points.mean(axis=0)
    away = points - center
    covariance = spread**2 * np.eye(dimension) + away.T @ away / len(points)
    log_variance = np.linalg.slogdet(covariance)[1] / dimension
    return Beginning(center, math.exp(log_variance / 2), covariance / math.exp(log_variance))
