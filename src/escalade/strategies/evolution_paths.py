"""Evolution paths, whose length makes a step size grow or shrink.

Hansen 2016, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772, section 4.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def mu_eff_of(weights: NDArray[np.float64]) -> float:
    """Return the effective number of parents for weights of sum 1: ``1 / sum(weights**2)`` (equation 8)."""
    return 1 / float((weights**2).sum())


def with_ties(mu_eff: float, by_rank: NDArray[np.float64], shared: NDArray[np.float64]) -> float:
    """Return ``mu_eff`` of a generation with tied members; without ties it is exactly ``mu_eff``.

    Tied members share their weights, which makes the weights more even and the steps shorter. With the
    ``mu_eff`` of ``by_rank``, the path would be too short even without selection, and the step size would
    shrink.

    Args:
        mu_eff: that of ``by_rank``.
        by_rank: weights from the best to the worst member, in descending order.
        shared: the members' weights after ties share them.
    """
    return mu_eff * float((by_rank**2).sum() / (np.sort(shared)[::-1] ** 2).sum())


def moved(path: Any, c: float, mu_eff: float, step: Any, h_sigma: float = 1.0) -> Any:
    """Return the path after a ``step``, a weighted mean of noise, at learning rate ``c`` (equations 43, 45).

    Without selection, and with standard normal noise, a standard normal path stays standard normal. Path and
    step are arrays or tensors.
    """
    return (1 - c) * path + h_sigma * math.sqrt(c * (2 - c) * mu_eff) * step


def damping(c_sigma: float, mu_eff: float, n: int) -> float:
    """Return the damping of a step size's changes (equation 55)."""
    return 1 + 2 * max(0.0, math.sqrt((mu_eff - 1) / (n + 1)) - 1) + c_sigma


def expected_norm(n: int) -> float:
    """Return the expected length of a standard normal vector of ``n`` numbers."""
    return math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))


def path_growth(c_sigma: float, length2: float, n: int) -> float:
    """Return the factor, at most e, of a step size whose path of ``n`` numbers has length² ``length2``.

    The rule itself has no bound, and overflows if members are many and parameters few.
    """
    return math.exp(min(1.0, c_sigma / 2 * (length2 / n - 1)))


def path_deviation(c_sigma: float, updates: int) -> float:
    """Return the standard deviation of each number of the path after ``updates`` steps without selection.

    The path begins at 0 and becomes ``(1 - c) * path + sqrt(c * (2 - c)) * z`` with z standard normal, so
    its variance v becomes ``(1 - c)**2 * v + 1 - (1 - c)**2``: ``1 - (1 - c)**(2 * t)`` after t updates.
    """
    return math.sqrt(1 - (1 - c_sigma) ** (2 * updates))


def heaviside(length: float, c_sigma: float, updates: int, n: int) -> float:
    """Return 0 while the step size grows fast, so that the covariance does not grow as well, otherwise 1.

    Args:
        length: length of the step size's path.
        c_sigma: learning rate of that path.
        updates: number of its updates, including this generation's. Hansen's own code counts the same way:
            ``2 * counteval / lam`` in purecma 4.5.0, after counteval has grown by lam.
        n: the dimension.
    """
    settled = length / path_deviation(c_sigma, updates)
    return 1.0 if settled < (1.4 + 2 / (n + 1)) * expected_norm(n) else 0.0
