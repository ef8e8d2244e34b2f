"""Stacks of linear layers: the policies that a whole population runs as one batch.

Nothing here needs torch, so that a worker starts without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


def _elu(x: Array) -> None:
    np.copyto(x, np.exp(np.minimum(x, 0.0)) - np.float32(1.0), where=x < 0)


# Constants of Klambauer et al. 2017, "Self-Normalizing Neural Networks", section 2.
_SELU_ALPHA: Final = np.float32(1.6732632423543772)
_SELU_SCALE: Final = np.float32(1.0507009873554805)


def _selu(x: Array) -> None:
    np.copyto(x, _SELU_ALPHA * (np.exp(np.minimum(x, 0.0)) - np.float32(1.0)), where=x < 0)
    x *= _SELU_SCALE


def _tanh(x: Array) -> None:
    np.tanh(x, out=x)


def _relu(x: Array) -> None:
    np.maximum(x, 0.0, out=x)


ACTIVATIONS: Final[dict[str, Callable[[Array], None]]] = {
    "tanh": _tanh,
    "relu": _relu,
    "elu": _elu,
    "selu": _selu,
}
"""In-place activations, shape kept."""


@dataclass(frozen=True)
class Layer:
    """One linear layer and what follows it."""

    inputs: int
    outputs: int
    bias: bool
    activation: str | None

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.inputs * self.outputs + self.bias * self.outputs


@dataclass(frozen=True)
class Stack:
    """Layers one after the other.

    A member's flat parameters hold, layer by layer, the weight as (inputs, outputs), then the
    bias. That is torch's weight transposed: a row times a matrix is several times faster here
    than a matrix times a column.
    """

    layers: tuple[Layer, ...]

    @property
    def dimension(self) -> int:
        """Number of parameters of one member."""
        return sum(layer.size for layer in self.layers)

    @property
    def inputs(self) -> int:
        """Numbers the first layer takes."""
        return self.layers[0].inputs

    @property
    def outputs(self) -> int:
        """Numbers the last layer gives."""
        return self.layers[-1].outputs

    def forward(self, rows: int) -> StackForward:
        """Room for ``rows`` members."""
        return StackForward(self, rows)


class StackForward:
    """The forward pass of up to ``rows`` members, each with parameters of its own.

    Every member is its own vector-matrix product in BLAS, of a shape that does not depend on how
    many others there are: its outputs have the same bits in any batch and any row.
    """

    def __init__(self, stack: Stack, rows: int) -> None:
        # A block per layer, not a row per member: products stream through memory a fifth faster.
        self._weights = [_block(rows, layer.inputs, layer.outputs) for layer in stack.layers]
        self._biases = [_block(rows, layer.outputs) if layer.bias else None for layer in stack.layers]
        self._outputs = [_block(rows, 1, layer.outputs) for layer in stack.layers]
        names = [layer.activation for layer in stack.layers]
        self._activations = [ACTIVATIONS[name] if name else None for name in names]
        self._views: list[tuple[Array, Array | None, Array, Callable[[Array], None] | None]] = []
        self._count = -1

    def load(self, row: int, parameters: Array) -> None:
        """Give the member in ``row`` its parameters, shape (dimension,)."""
        start = 0
        for part in self._parts():
            end = start + part[row].size
            part[row] = parameters[start:end].reshape(part[row].shape)
            start = end

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move the given members, in order, to the front."""
        for part in self._parts():
            part[: len(rows)] = part[rows]

    def __call__(self, observations: Array) -> Array:
        """Outputs (k, outputs) of the first k members for observations (k, inputs) or (k, C, H, W).

        The result is overwritten by the next call.
        """
        count = len(observations)
        if count != self._count:
            self._slice(count)
        hidden = observations.reshape(count, -1)
        for weight, bias, out, activation in self._views:
            np.matmul(hidden[:, None, :], weight, out=out)
            hidden = out[:, 0, :]
            if bias is not None:
                hidden += bias
            if activation is not None:
                activation(hidden)
        return hidden

    def _parts(self) -> Iterator[Array]:
        """Weights and biases in the order of the flat parameters."""
        for weight, bias in zip(self._weights, self._biases, strict=True):
            yield weight
            if bias is not None:
                yield bias

    def _slice(self, count: int) -> None:
        self._count = count
        biases = [None if bias is None else bias[:count] for bias in self._biases]
        weights, outputs = ([part[:count] for part in parts] for parts in (self._weights, self._outputs))
        self._views = list(zip(weights, biases, outputs, self._activations, strict=True))


def _block(*shape: int) -> Array:
    return np.zeros(shape, dtype=np.float32)
