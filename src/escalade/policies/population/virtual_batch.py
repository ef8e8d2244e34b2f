"""Virtual batch normalization, by the statistics of a fixed batch under each member's own parameters.

Salimans et al. 2016, "Improved Techniques for Training GANs", section 3.4. Salimans et al. 2017 found that it
makes evolution strategies work on Atari, because perturbed networks then act differently. With torch.func
their network takes 33 to 61 % longer (benchmarks/convolutions.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from escalade.perturbation.low_rank import Part
from escalade.policies.activations import Array
from escalade.policies.population.layers import Operation, Shape, block

EPSILON: Final = 1e-3
"""Added to the variances, as in the published code."""

REFERENCE_FRAMES: Final = 128
"""Observations in a reference batch."""


class VirtualBatchNormOperation(Operation):
    """Subtract the mean of each channel (or number), divide by its standard deviation, and add a bias.

    Mean and deviation are those of the reference batch, over images and their pixels. The only parameters are
    the biases, because a scale would be redundant with the next layer's weights.
    """

    def __init__(
        self, inputs: Shape, rows: int, parts: Sequence[Part], activation: str | None = None
    ) -> None:
        # One number per row and channel, broadcast over pixels.
        shape = (rows, inputs[0], *([1] * (len(inputs) - 1)))
        self._bias, self._mean, self._inverse_std = (block(*shape) for _ in range(3))
        super().__init__(parts, [self._bias], [self._mean, self._inverse_std], activation)
        self._out = block(rows, *inputs)

    def begin(self, row: int, seed: int) -> None:
        """Do nothing: the statistics depend on the parameters, and :meth:`measure` sets them."""

    def measure(self, row: int, seen: Array) -> None:
        """Set the statistics of the member in ``row`` from its inputs, shape (batch, *inputs)."""
        self._mean[row], self._inverse_std[row] = statistics(seen)

    def each(self, row: int, batch: Array) -> Array:
        out: Array = (batch - self._mean[row]) * self._inverse_std[row] + self._bias[row]
        return self.activated(out)

    def __call__(self, x: Array) -> Array:
        count = len(x)
        out = self._out[:count]
        np.subtract(x, self._mean[:count], out=out)
        out *= self._inverse_std[:count]
        out += self._bias[:count]
        return self.activated(out)


def statistics(seen: NDArray[np.float32]) -> tuple[Array, Array]:
    """Return mean and 1 / deviation, shape (channels, ...), of each channel of (batch, channels, ...)."""
    others = (0, *range(2, seen.ndim))
    mean = seen.mean(axis=others, dtype=np.float64, keepdims=True)
    variance = np.square(seen - mean).mean(axis=others, keepdims=True)
    return mean[0].astype(np.float32), (1.0 / np.sqrt(variance[0] + EPSILON)).astype(np.float32)
