"""Stacks of linear layers: the policies that a whole population runs as one batch.

Nothing here needs torch, so that a worker starts without it.
"""

from __future__ import annotations

from collections.abc import Callable
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
        self.stack = stack
        # Rows begin on cache lines, whatever the number of parameters.
        stride = -(-stack.dimension // 16) * 16
        self._storage = np.zeros((rows, stride), dtype=np.float32)
        self.parameters: Array = self._storage[:, : stack.dimension]
        self._hidden = [np.empty((rows, 1, layer.outputs), dtype=np.float32) for layer in stack.layers]
        self._views: list[tuple[Array, Array | None, Array, Callable[[Array], None] | None]] = []
        self._count = -1

    def __call__(self, observations: Array) -> Array:
        """Outputs (k, outputs) of the first k members for observations (k, inputs).

        The result is overwritten by the next call.
        """
        count = len(observations)
        if count != self._count:
            self._slice(count)
        hidden = observations
        for weight, bias, out, activation in self._views:
            np.matmul(hidden[:, None, :], weight, out=out)
            hidden = out[:, 0, :]
            if bias is not None:
                hidden += bias
            if activation is not None:
                activation(hidden)
        return hidden

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move the given members, in order, to the front."""
        self._storage[: len(rows)] = self._storage[rows]

    def _slice(self, count: int) -> None:
        start, self._views, self._count = 0, [], count
        for layer, hidden in zip(self.stack.layers, self._hidden, strict=True):
            end = start + layer.inputs * layer.outputs
            weight = _as_matrices(self.parameters[:count, start:end], layer)
            bias = self.parameters[:count, end : end + layer.outputs] if layer.bias else None
            start = end + layer.bias * layer.outputs
            activation = ACTIVATIONS[layer.activation] if layer.activation else None
            self._views.append((weight, bias, hidden[:count], activation))


def _as_matrices(flat: Array, layer: Layer) -> Array:
    # A view, not a reshape, which would copy the strided rows.
    row, item = flat.strides
    shape, strides = (len(flat), layer.inputs, layer.outputs), (row, item * layer.outputs, item)
    return np.lib.stride_tricks.as_strided(flat, shape, strides)
