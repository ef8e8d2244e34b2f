"""Recurrent cells of a population: each member's hidden state lies in its row, and moves with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escalade.policies.activations import Array, sigmoid
from escalade.policies.layers import Operation, VectorLayer, block


@dataclass(frozen=True)
class Cell(VectorLayer):
    """A GRU (Cho et al. 2014) or LSTM cell (Hochreiter and Schmidhuber 1997), as torch computes them.

    The flat vector holds torch's ``weight_ih`` and ``weight_hh``, both transposed, then the biases.
    """

    kind: str
    """``gru`` or ``lstm``."""
    bias: bool

    @property
    def gates(self) -> int:
        """Numbers that each unit computes from inputs and hidden state."""
        return 3 if self.kind == "gru" else 4

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.gates * self.units * (self.features + self.units + 2 * self.bias)

    def operation(self, rows: int) -> Operation:
        """Room for ``rows`` members."""
        return (_Gru if self.kind == "gru" else _Lstm)(self, rows)


class _CellOperation(Operation):
    """Base of both cells: products of the inputs and of the hidden state with matrices of the member's."""

    def __init__(self, layer: Cell, rows: int) -> None:
        width = layer.gates * layer.units
        self._units = layer.units
        self._weights = block(rows, layer.features, width), block(rows, layer.units, width)
        self._biases = (block(rows, width), block(rows, width)) if layer.bias else ()
        self._products = block(rows, 1, width), block(rows, 1, width)
        self.hidden = block(rows, layer.units)
        super().__init__([*self._weights, *self._biases], [self.hidden])

    def _sums(self, x: Array) -> tuple[Array, Array]:
        """The gates' sums over inputs and over hidden state, shape (k, gates * units) each."""
        count, sums = len(x), []
        for place, seen in enumerate((x, self.hidden[:count])):
            out = self._products[place][:count]
            np.matmul(seen[:, None, :], self._weights[place][:count], out=out)
            if self._biases:
                out[:, 0] += self._biases[place][:count]
            sums.append(out[:, 0])
        return sums[0], sums[1]


class _Gru(_CellOperation):
    def __call__(self, x: Array) -> Array:
        seen, kept = self._sums(x)
        units, hidden = self._units, self.hidden[: len(x)]
        gates = seen[:, : 2 * units]
        gates += kept[:, : 2 * units]
        sigmoid(gates)
        reset, update = gates[:, :units], gates[:, units:]
        new = kept[:, 2 * units :]
        new *= reset
        new += seen[:, 2 * units :]
        np.tanh(new, out=new)
        hidden -= new
        hidden *= update
        hidden += new
        return hidden


class _Lstm(_CellOperation):
    def __init__(self, layer: Cell, rows: int) -> None:
        super().__init__(layer, rows)
        self.memory = block(rows, layer.units)
        self.state.append(self.memory)

    def __call__(self, x: Array) -> Array:
        gates, kept = self._sums(x)
        gates += kept
        units, memory, hidden = self._units, self.memory[: len(x)], self.hidden[: len(x)]
        new = gates[:, 2 * units : 3 * units]
        np.tanh(new, out=new)
        enter, leave, out = gates[:, :units], gates[:, units : 2 * units], gates[:, 3 * units :]
        for gate in (enter, leave, out):
            sigmoid(gate)
        memory *= leave
        new *= enter
        memory += new
        np.tanh(memory, out=hidden)
        hidden *= out
        return hidden
