"""Noise that is stretched along a few directions, as Guided ES draws it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike, NDArray

from escalade.perturbation.population import Center, Draws, NoiseSource, Weights


@dataclass(frozen=True)
class GuidedNoise:
    """Another source's noise, stretched so that a share of its variance lies along ``basis``.

    With k orthonormal rows U and n parameters, noise has the covariance ``alpha * I + (1 - alpha) * n / k
    * U'U``: as long on average as the source's own. Maheswaranathan et al. 2019, equation 3, times n.
    """

    source: NoiseSource
    basis: NDArray[np.floating]
    """Orthonormal rows, shape (k, dimension); without rows nothing is stretched."""
    alpha: float

    @property
    def address(self) -> GuidedNoise:
        """The same with its source's address: what travels within a population."""
        return replace(self, source=getattr(self.source, "address", self.source))

    def draw(self, seed: int, generation: int, count: int, dimension: int) -> GuidedDraws:
        """The ``count`` perturbations of a generation of the search with ``seed``."""
        k = len(self.basis)
        across = math.sqrt(self.alpha) if k else 1.0
        along = math.sqrt(self.alpha + (1 - self.alpha) * dimension / k) if k else 1.0
        return GuidedDraws(self.source.draw(seed, generation, count, dimension), self.basis, across, along)


@dataclass(frozen=True)
class GuidedDraws:
    """One generation's noise ``across * z + (along - across) * U'U z``, for the noise z of ``draws``."""

    draws: Draws
    basis: NDArray[np.floating]
    across: float
    along: float

    def write(self, number: int, scale: float | Center, out: Center) -> None:
        self.draws.write(number, 1.0, out)
        self._stretch(out)
        out *= scale

    def weighted_sum(self, weights: Weights, dtype: DTypeLike = np.float32) -> Center:
        total = self.draws.weighted_sum(weights, dtype)
        self._stretch(total)
        return total

    def _stretch(self, z: Center) -> None:
        # Added up by numpy, not by a matrix product, whose bits depend on the number of threads.
        parts = [float(np.add.reduce(row * z, dtype=np.float64)) for row in self.basis]
        z *= self.across
        for part, row in zip(parts, self.basis, strict=True):
            z += ((self.along - self.across) * part * row).astype(z.dtype, copy=False)


def orthonormal(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    """Orthonormal rows that span ``rows``, shape (k, dimension), the last of them first.

    Rows that add nothing are left out (modified Gram and Schmidt, twice for the sake of rounding).
    """
    kept: list[NDArray[np.float64]] = []
    for row in np.asarray(rows[::-1], dtype=np.float64):
        length = _norm(row)
        if length == 0.0:
            continue
        left = row / length
        for _ in range(2):
            for other in kept:
                left = left - float(np.add.reduce(left * other)) * other
        if _norm(left) > 1e-6:
            kept.append(left / _norm(left))
    return np.array(kept).reshape(len(kept), rows.shape[1])


def _norm(row: NDArray[np.float64]) -> float:
    """Its length, also where squares of its numbers are beyond the largest number."""
    largest = float(np.abs(row).max())
    return largest * math.sqrt(float(np.add.reduce((row / largest) ** 2))) if largest else 0.0
