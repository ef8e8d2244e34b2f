"""A source of noise: the perturbations of a generation, each written or summed by its number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

Vector = NDArray[np.float32]
Center = NDArray[np.floating]
"""Parameters: float32, or float64 where the strategy's first centre was."""
Weights = Sequence[float] | NDArray[np.floating]


class Draws(Protocol):
    """One generation's perturbations ``noise_0, noise_1, ...``, each of shape (dimension,).

    Those of large models may have ``weighted_pieces(weights, dtype)`` besides, which yields stretches of the
    vector and the weighted sum there, so that the whole sum is never in memory.
    """

    def write(self, number: int, scale: float | Center, out: Center) -> None:
        """Write ``scale * noise_number`` into ``out``, shape (dimension,), in the type of ``out``."""
        ...

    def weighted_sum(self, weights: Weights, dtype: DTypeLike = np.float32) -> Center:
        """``sum_k weights[k] * noise_k``, shape (dimension,), always added in the same order.

        A weight of zero skips its perturbation.
        """
        ...

    def weighted_square_sum(
        self, weights: Weights, shift: Center | None = None, dtype: DTypeLike = np.float32
    ) -> Center:
        """``sum_k weights[k] * (noise_k - shift)**2``, shape (dimension,), always added in the same order.

        ``shift`` has shape (dimension,) and the type of the sum; without it nothing is subtracted.
        """
        ...


class NoiseSource(Protocol):
    """A source of perturbations: standard normal numbers, a function of their address alone.

    A source that is large has an ``address`` besides: a small object that is pickled in its place within a
    population, and unpickles to the source that the process has.
    """

    def draw(self, seed: int, generation: int, count: int, dimension: int) -> Draws:
        """The ``count`` perturbations of a generation of the search with ``seed``.

        Perturbation k does not depend on ``count``.
        """
        ...
