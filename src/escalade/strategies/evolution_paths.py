"""The arithmetic of evolution paths: by their length a step size grows or shrinks.

Hansen 2016, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772, section 4.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def mu_eff_of(weights: NDArray[np.float64]) -> float:
    """The number of parents that weights of sum 1 count for: ``1 / sum(weights**2)`` (equation 8)."""
    return 1 / float((weights**2).sum())


def with_ties(mu_eff: float, by_rank: NDArray[np.float64], shared: NDArray[np.float64]) -> float:
    """``mu_eff`` of a generation in which members tie; exactly as it was where none do.

    Weights that are shared are more even, and their steps shorter. Taken for those of ``by_rank``, they would
    make every path too short without any selection, and the step size shrink.

    Args:
        mu_eff: of ``by_rank``.
        by_rank: weights of the best, the second best, ... member, none larger than the one before.
        shared: the members' own.
    """
    return mu_eff * float((by_rank**2).sum() / (np.sort(shared)[::-1] ** 2).sum())


def moved(path: Any, c: float, mu_eff: float, step: Any, h_sigma: float = 1.0) -> Any:
    """The path after a ``step``, a weighted mean of noise, at the learning rate ``c`` (equations 43 and 45).

    Without selection its numbers stay standard normal, if they were, and the noise is. Arrays or tensors.
    """
    return (1 - c) * path + h_sigma * math.sqrt(c * (2 - c) * mu_eff) * step


def damping(c_sigma: float, mu_eff: float, n: int) -> float:
    """The damping of a step size's changes (equation 55)."""
    return 1 + 2 * max(0.0, math.sqrt((mu_eff - 1) / (n + 1)) - 1) + c_sigma


def expected_norm(n: int) -> float:
    """Expected length of a standard normal vector of ``n`` numbers."""
    return math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))


def path_growth(c_sigma: float, length2: float, n: int) -> float:
    """The factor of a step size whose path of ``n`` numbers has the squared length ``length2``; e at most.

    The rule has no bound, and overflows where members are many and parameters few.
    """
    return math.exp(min(1.0, c_sigma / 2 * (length2 / n - 1)))


def path_deviation(c_sigma: float, updates: int) -> float:
    """Standard deviation of each number of the path after ``updates`` steps without selection.

    The path begins at 0 and becomes ``(1 - c) * path + sqrt(c * (2 - c)) * z`` with z standard normal, so
    its variance v becomes ``(1 - c)**2 * v + 1 - (1 - c)**2``: ``1 - (1 - c)**(2 * t)`` after t updates.
    """
    return math.sqrt(1 - (1 - c_sigma) ** (2 * updates))


def heaviside(length: float, c_sigma: float, updates: int, n: int) -> float:
    """0 while the step size is growing fast, so that the covariance does not grow as well; else 1.

    Args:
        length: of the path of the step size.
        c_sigma: its learning rate.
        updates: how often it has been updated, this generation's update included. Hansen's own codes
            count so too: ``2 * counteval / lam`` in purecma 4.5.0, after counteval has grown by lam.
        n: the dimension.
    """
    settled = length / path_deviation(c_sigma, updates)
    return 1.0 if settled < (1.4 + 2 / (n + 1)) * expected_norm(n) else 0.0
