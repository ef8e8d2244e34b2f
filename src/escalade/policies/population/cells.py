"""Recurrent cells of a population: each member's hidden state lies in its row, and moves with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from escalade.perturbation.low_rank import Part
from escalade.policies.activations import Array, sigmoid
from escalade.policies.population.layers import Given, Operation, block
from escalade.policies.population.product import product


class CellOperation(Operation):
    """A GRU (Cho et al. 2014) or LSTM cell (Hochreiter and Schmidhuber 1997), as torch computes them.

    The flat vector holds torch's ``weight_ih`` and ``weight_hh``, both transposed, then the biases.
    """

    def __init__(self, kind: str, rows: int, parts: Sequence[Part]) -> None:
        self._step = _STEPS[kind]
        self._seen, self._kept = product(rows, parts[0::2]), product(rows, parts[1::2])
        units = parts[1].shape[0]
        # The hidden state, and an LSTM's memory.
        state = [block(rows, units) for _ in range(1 if kind == "gru" else 2)]
        super().__init__(parts, [*self._seen.parameters, *self._kept.parameters], state)

    def share(self, center: Array) -> None:
        self._seen.share(center)
        self._kept.share(center)

    def load(self, row: int, member: Given) -> None:
        self._seen.load(row, member)
        self._kept.load(row, member)

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
