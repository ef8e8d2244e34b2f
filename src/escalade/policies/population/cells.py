"""Recurrent cells of a population: each member's hidden state is in its row, and moves with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from escalade.perturbation.low_rank import Part
from escalade.policies.activations import Array, sigmoid
from escalade.policies.population.layers import MemberReader, Operation, block
from escalade.policies.population.product import product


class CellOperation(Operation):
    """A GRU (Cho et al. 2014) or LSTM cell (Hochreiter and Schmidhuber 1997), computed as torch does.

    The flat vector holds torch's ``weight_ih`` and ``weight_hh``, both transposed, then the biases.
    """

    def __init__(self, kind: str, rows: int, parts: Sequence[Part]) -> None:
        self._step = _STEPS[kind]
        self._of_input, self._of_hidden = product(rows, parts[0::2]), product(rows, parts[1::2])
        units = parts[1].shape[0]
        # The hidden state and, for an LSTM, the memory.
        state = [block(rows, units) for _ in range(1 if kind == "gru" else 2)]
        super().__init__(parts, [*self._of_input.parameters, *self._of_hidden.parameters], state)

    def share(self, center: Array) -> None:
        self._of_input.share(center)
        self._of_hidden.share(center)

    def load(self, row: int, member: MemberReader) -> None:
        self._of_input.load(row, member)
        self._of_hidden.load(row, member)

    def __call__(self, x: Array) -> Array:
        state = [part[: len(x)] for part in self.state]
        return self._step(self._of_input(x), self._of_hidden(state[0]), *state)


def _gru(of_input: Array, of_hidden: Array, hidden: Array) -> Array:
    """Advance one step, from the gates' sums over inputs and over hidden state, shape (k, 3 * units) each."""
    units = hidden.shape[1]
    gates = of_input[:, : 2 * units]
    gates += of_hidden[:, : 2 * units]
    sigmoid(gates)
    reset, update = gates[:, :units], gates[:, units:]
    new = of_hidden[:, 2 * units :]
    new *= reset
    new += of_input[:, 2 * units :]
    np.tanh(new, out=new)
    hidden -= new
    hidden *= update
    hidden += new
    return hidden


def _lstm(gates: Array, of_hidden: Array, hidden: Array, memory: Array) -> Array:
    """Advance one step, from the gates' sums over inputs and over hidden state, shape (k, 4 * units) each."""
    units = hidden.shape[1]
    gates += of_hidden
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
