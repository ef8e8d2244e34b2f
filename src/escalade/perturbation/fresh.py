"""Noise that is made anew for each generation: a search of few parameters would use little of a table.

Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3": the generator begins at a counter, the
number of the generation, so nothing is carried from one to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from escalade.perturbation.address import Stream
from escalade.perturbation.population import Center, NoiseSource, Weights
from escalade.perturbation.table import NoiseTable, table_size

MOST = 2**8
"""Parameters up to which noise is made for each generation: the table's 4.2 million numbers take 60 ms."""


@dataclass(frozen=True)
class FreshNoise:
    """A source of standard normal float64 numbers that takes no memory.

    To draw one perturbation takes drawing those before it too, so it is not for strategies that draw single
    ones of earlier generations.
    """

    def draw(self, seed: int, generation: int, count: int, dimension: int) -> FreshDraws:
        """The ``count`` perturbations of a generation of the search with ``seed``."""
        generator = np.random.Philox(key=[seed, int(Stream.NOISE)], counter=[0, 0, 0, generation])
        return FreshDraws(np.random.Generator(generator).standard_normal((count, dimension)))


@dataclass(frozen=True)
class FreshDraws:
    """One generation's perturbations, the rows of an array of shape (n, dimension)."""

    rows: NDArray[np.float64]

    def write(self, number: int, scale: float | Center, out: Center) -> None:
        np.multiply(self.rows[number], scale, out=out)

    def weighted_sum(self, weights: Weights, dtype: DTypeLike = np.float32) -> Center:
        # Added by numpy: the bits of a product of BLAS depend on its number of threads.
        terms = self.rows * np.asarray(weights)[:, None]
        return np.asarray(np.add.reduce(terms, axis=0).astype(dtype))

    def weighted_square_sum(
        self, weights: Weights, shift: Center | None = None, dtype: DTypeLike = np.float32
    ) -> Center:
        moved = self.rows if shift is None else self.rows - shift
        return FreshDraws(moved**2).weighted_sum(weights, dtype)


def usual_noise(seed: int, dimension: int, *, once: bool = True) -> NoiseSource:
    """Return the source of a search that names none.

    Args:
        seed: of the search.
        dimension: number of parameters.
        once: whether each generation's noise is drawn as a whole; else the source is a table.
    """
    return FreshNoise() if once and dimension <= MOST else NoiseTable(seed, table_size(dimension))
