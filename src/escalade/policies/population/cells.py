"""Recurrent cells of a population: each member's hidden state lies in its row, and moves with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from escalade.perturbation.low_rank import Part
from escalade.policies.activations import Array, sigmoid
from escalade.policies.population.layers import Operation, SharingOperation, VectorLayer, block
from escalade.policies.population.shared_product import SharedProduct


@dataclass(frozen=True)
class Cell(VectorLayer):
    """A GRU (Cho et al. 2014) or LSTM cell (Hochreiter and Schmidhuber 1997), as torch computes them.

    The flat vector holds torch's ``weight_ih`` and ``weight_hh``, both transposed, then the biases.
    """

    kind: str
    """``gru`` or ``lstm``."""
    bias: bool
    matrices: ClassVar[int] = 2

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
        return _OwnCell(self, rows)

    def sharing(self, rows: int, parts: Sequence[Part]) -> SharingOperation:
        """Room for ``rows`` members that share the centre's weights."""
        return _SharingCell(self, rows, parts)

    def state(self, rows: int) -> list[Array]:
        """The hidden state, and an LSTM's memory, of rows whose episodes begin."""
        return [block(rows, self.units) for _ in range(1 if self.kind == "gru" else 2)]


class _OwnCell(Operation):
    """A cell of members that have matrices of their own."""

    def __init__(self, layer: Cell, rows: int) -> None:
        width = layer.gates * layer.units
        self._step = _STEPS[layer.kind]
        self._weights = block(rows, layer.features, width), block(rows, layer.units, width)
        self._biases = (block(rows, width), block(rows, width)) if layer.bias else ()
        self._products = block(rows, 1, width), block(rows, 1, width)
        super().__init__([*self._weights, *self._biases], layer.state(rows))

    def __call__(self, x: Array) -> Array:
        count, sums = len(x), []
        state = [part[:count] for part in self.state]
        for place, seen in enumerate((x, state[0])):
            out = self._products[place][:count]
            np.matmul(seen[:, None, :], self._weights[place][:count], out=out)
            if self._biases:
                out[:, 0] += self._biases[place][:count]
            sums.append(out[:, 0])
        return self._step(*sums, *state)


class _SharingCell(SharingOperation):
    """A cell of members that share the centre's matrices."""

    def __init__(self, layer: Cell, rows: int, parts: Sequence[Part]) -> None:
        self._step = _STEPS[layer.kind]
        products = [
            SharedProduct(rows, *own) for own in zip(parts[:2], parts[2:] or (None, None), strict=True)
        ]
        super().__init__(products, layer.state(rows))
        self._seen, self._kept = products

    def __call__(self, x: Array) -> Array:
        state = [part[: len(x)] for part in self.state]
        return self._step(self._seen(x), self._kept(state[0]), *state)


def _gru(seen: Array, kept: Array, hidden: Array) -> Array:
    """One step, from the gates' sums over inputs and over hidden state, shape (k, 3 * units) each."""
    units = hidden.shape[1]
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


def _lstm(gates: Array, kept: Array, hidden: Array, memory: Array) -> Array:
    """One step, from the gates' sums over inputs and over hidden state, shape (k, 4 * units) each."""
    units = hidden.shape[1]
    gates += kept
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


_STEPS: Final[dict[str, Callable[..., Array]]] = {"gru": _gru, "lstm": _lstm}
