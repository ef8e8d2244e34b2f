"""Plastic layers: their weights change at every step by a rule, and the rule is what evolves.

Najarro and Risi 2020, "Meta-Learning through Hebbian Plasticity in Random Networks" (arXiv 2007.02686).
Through torch.func it takes 1.5 to 3.9 times as long (benchmarks/convolutions.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from escalade.perturbation.address import Stream, hash64
from escalade.policies.activations import Array
from escalade.policies.population.layers import Operation, VectorLayer, block

COEFFICIENTS: Final = 5
"""A weight's numbers in the rule: A, B, C, D and the learning rate."""

_LARGEST: Final = 0.1  # of the weights that an episode begins with


@dataclass(frozen=True)
class PlasticLayer(VectorLayer):
    """A linear layer without bias whose weights are state: equation 1 of the paper, once a step.

    A weight w from input x to output y grows by ``rate * (A * x * y + B * x + C * y + D)``; then the
    layer's weights are divided by the largest of them, as the published code does. An episode begins
    with weights drawn uniformly from [-0.1, 0.1]. The flat vector holds A, B, C, D and the rates, each
    of shape (features, units).
    """

    number: int
    """Its place among the plastic layers: each draws other weights."""
    activation: str | None = None

    @property
    def size(self) -> int:
        """Number of parameters."""
        return COEFFICIENTS * self.features * self.units

    def operation(self, rows: int) -> Operation:
        """Room for ``rows`` members."""
        return _PlasticOperation(self, rows)


class _PlasticOperation(Operation):
    def __init__(self, layer: PlasticLayer, rows: int) -> None:
        self._number = layer.number
        self._rule = block(rows, COEFFICIENTS, layer.features, layer.units)
        self._weight = block(rows, layer.features, layer.units)
        super().__init__([self._rule], [self._weight], layer.activation)
        self._out = block(rows, 1, layer.units)
        self._change, self._part = (block(layer.features, layer.units) for _ in range(2))

    def begin(self, row: int, seed: int) -> None:
        self._weight[row] = first_weights(seed, self._number, self._weight[row].shape)

    def __call__(self, x: Array) -> Array:
        count = len(x)
        np.matmul(x[:, None, :], self._weight[:count], out=self._out[:count])
        out = self.activated(self._out[:count, 0])
        for row in range(count):
            self._learn(row, x[row, :, None], out[row])
        return out

    def _learn(self, row: int, x: Array, y: Array) -> None:
        a, b, c, d, rate = self._rule[row]
        weight, change, part = self._weight[row], self._change, self._part
        np.multiply(a, y, out=change)
        change += b
        change *= x
        np.multiply(c, y, out=part)
        part += d
        change += part
        change *= rate
        weight += change
        largest = max(weight.max(), -weight.min())
        if largest > 0:
            weight /= largest


def first_weights(seed: int, number: int, shape: tuple[int, ...]) -> Array:
    """The weights that an episode with this seed begins with in plastic layer ``number``."""
    words = hash64(int(Stream.STATE), seed, number, np.arange(int(np.prod(shape))))
    uniform = (words >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1.0)
    return (uniform * np.float32(_LARGEST)).reshape(shape)
