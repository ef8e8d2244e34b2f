"""The arithmetic of evolution paths: by their length a step size grows or shrinks.

Hansen 2016, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772, section 4.
"""

from __future__ import annotations

import math


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
