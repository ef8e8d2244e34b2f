"""Noise of Guided ES, stretched along a few directions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike, NDArray

from escalade.perturbation.population import Center, Draws, NoiseSource, Weights


@dataclass(frozen=True)
class GuidedNoise:
    """Noise of a source, stretched so that a share of its variance lies along ``basis``.

    With k orthonormal rows U and n parameters, the covariance is ``alpha * I + (1 - alpha) * n / k * U'U``.
    The mean squared norm is that of the source. Maheswaranathan et al. 2019, equation 3, times n.
    """

    source: NoiseSource
    basis: NDArray[np.floating]
    """Orthonormal rows, shape (k, dimension). Without rows, the noise is not changed."""
    alpha: float

    @property
    def address(self) -> GuidedNoise:
        """The same noise with the address of its source, to be sent with a population."""
        return replace(self, source=getattr(self.source, "address", self.source))

    def draw(self, seed: int, generation: int, count: int, dimension: int) -> GuidedDraws:
        """Return the ``count`` perturbations of a generation of the search with ``seed``."""
        k = len(self.basis)
        across = math.sqrt(self.alpha) if k else 1.0
        along = math.sqrt(self.alpha + (1 - self.alpha) * dimension / k) if k else 1.0
        return GuidedDraws(self.source.draw(seed, generation, count, dimension), self.basis, across, along)


@dataclass(frozen=True)
class GuidedDraws:
    """Noise of one generation, ``across * z + (along - across) * U'U z``, for the noise z of ``draws``."""

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
        # A matrix product would not be bit-identical with different numbers of threads.
        parts = [float(np.add.reduce(row * z, dtype=np.float64)) for row in self.basis]
        z *= self.across
        for part, row in zip(parts, self.basis, strict=True):
            z += ((self.along - self.across) * part * row).astype(z.dtype, copy=False)


def orthonormal(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return orthonormal rows that span ``rows``, shape (k, dimension), starting with the last row.

    Linearly dependent rows are dropped. Modified Gram-Schmidt, applied twice because of rounding errors.
    """
    basis: list[NDArray[np.float64]] = []
    for row in np.asarray(rows[::-1], dtype=np.float64):
        length = _norm(row)
        if length == 0.0:
            continue
        left = row / length
        for _ in range(2):
            for other in basis:
                left = left - float(np.add.reduce(left * other)) * other
        if _norm(left) > 1e-6:
            basis.append(left / _norm(left))
    return np.array(basis).reshape(len(basis), rows.shape[1])


def _norm(row: NDArray[np.float64]) -> float:
    """Return the norm, without overflow of squares."""
    largest = float(np.abs(row).max())
    return largest * math.sqrt(float(np.add.reduce((row / largest) ** 2))) if largest else 0.0
