"""Base class of strategies that transform noise into steps by one matrix."""

from __future__ import annotations

import os
from typing import ClassVar

import numpy as np

from escalade.errors import InputError
from escalade.strategies.sized import Matrix, SizedStrategy

CONDITION = 1e14
"""Ratio of the largest to the smallest variance beyond which a covariance is numerically useless."""

# Float64 matrices (d, d) in memory at once: CMA-ES's C, its eigenvectors, temporaries of eigh and update().
_MATRICES = 6


class MatrixStrategy(SizedStrategy):
    """A sized strategy whose members are ``center + step_size * matrix @ z``, with z standard normal.

    Raises:
        InputError: an argument is invalid, or the matrices would not fit in this host's memory.
    """

    decomposes = True
    adapted: ClassVar[tuple[str, ...]] = ("matrix",)

    def begin(self, n: int, population: int) -> None:
        refuse_if_too_large(n, type(self).__name__)
        self.matrix: Matrix = np.eye(n)

    @property
    def scale(self) -> Matrix:
        """Standard deviation of the members in each parameter, shape (dimension,)."""
        return np.asarray(self.step_size * np.linalg.norm(self.matrix, axis=1))

    @property
    def condition(self) -> float:
        """Ratio of the largest to the smallest variance of the search distribution along its axes."""
        lengths = np.linalg.svd(self.matrix, compute_uv=False)
        return float((lengths[0] / max(lengths[-1], 1e-30 * lengths[0])) ** 2)

    def narrow(self, factors: Matrix) -> None:
        self.matrix = factors[:, None] * self.matrix

    def shaped(self, z: Matrix) -> Matrix:
        return np.asarray(z @ self.matrix.T)


def refuse_if_too_large(n: int, what: str) -> None:
    """Raise InputError if the matrices of ``what`` in n dimensions would not fit in this host's memory."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on Windows
        memory = 8 * 2**30
    needed = _MATRICES * 8 * n * n
    if needed > memory / 2:
        raise InputError(
            f"{what} of dimension {n} needs {needed / 2**30:.0f} GiB for its matrices, more than half"
            f" of this host's {memory / 2**30:.0f} GiB; use SepCMAES or SNES, whose memory is O(dimension)"
        )
