"""Noise that is generated anew for each generation, for searches of few parameters.

Such a search would use only a small part of a noise table. The generator starts at a counter, the number of
the generation, so no state is carried from one generation to the next (Salmon et al. 2011, "Parallel random
numbers: as easy as 1, 2, 3").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from escalade.perturbation.address import Stream
from escalade.perturbation.population import Center, NoiseSource, Weights
from escalade.perturbation.table import NoiseTable, table_size

MOST = 2**8
"""Most parameters for which noise is drawn each generation: a table of 4.2 million numbers takes 60 ms."""


@dataclass(frozen=True)
class FreshNoise:
    """Source of standard normal float64 numbers that needs no memory.

    Drawing one perturbation also draws all before it. The source is therefore unsuitable for strategies that
    draw single perturbations of earlier generations.
    """

    def draw(self, seed: int, generation: int, count: int, dimension: int) -> FreshDraws:
        """Return the ``count`` perturbations of a generation of the search with ``seed``."""
        generator = np.random.Philox(key=[seed, int(Stream.NOISE)], counter=[0, 0, 0, generation])
        return FreshDraws(np.random.Generator(generator).standard_normal((count, dimension)))


@dataclass(frozen=True)
class FreshDraws:
    """One generation's perturbations, the rows of an array of shape (n, dimension)."""

    rows: NDArray[np.float64]

    def write(self, number: int, scale: float | Center, out: Center) -> None:
        np.multiply(self.rows[number], scale, out=out)

    def weighted_sum(self, weights: Weights, dtype: DTypeLike = np.float32) -> Center:
        # Added by NumPy: the rounding of a BLAS product depends on the number of threads.
        terms = self.rows * np.asarray(weights)[:, None]
        return np.asarray(np.add.reduce(terms, axis=0).astype(dtype))

    def weighted_square_sum(
        self, weights: Weights, shift: Center | None = None, dtype: DTypeLike = np.float32
    ) -> Center:
        moved = self.rows if shift is None else self.rows - shift
        return FreshDraws(moved**2).weighted_sum(weights, dtype)


def usual_noise(seed: int, dimension: int, *, once: bool = True) -> NoiseSource:
    """Return the default noise source of a search.

    Args:
        seed: Seed of the search.
        dimension: Number of parameters.
        once: True if each generation's noise is drawn as a whole. Otherwise the source is always a table.
    """
    return FreshNoise() if once and dimension <= MOST else NoiseTable(seed, table_size(dimension))
