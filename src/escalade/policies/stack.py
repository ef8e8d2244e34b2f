"""Stacks of layers: the policies that a whole population runs as one batch.

Nothing here needs torch, so that a worker starts without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from escalade.perturbation import Population
from escalade.policies.activations import Array
from escalade.policies.layers import Layer
from escalade.policies.virtual_batch import VirtualBatchNormOperation


@dataclass(frozen=True, eq=False)
class Stack:
    """Layers one after the other. A member's flat parameters hold those of each layer in turn."""

    layers: tuple[Layer, ...]
    reference: Array | None = None
    """For virtual batch normalisation: observations as the network gets them, (batch, *shape)."""

    @property
    def dimension(self) -> int:
        """Number of parameters of one member."""
        return sum(layer.size for layer in self.layers)

    @property
    def inputs(self) -> int:
        """Numbers the first layer takes."""
        return int(np.prod(self.layers[0].inputs))

    @property
    def outputs(self) -> int:
        """Numbers the last layer gives."""
        return int(np.prod(self.layers[-1].outputs))

    def forward(self, rows: int) -> StackForward:
        """Room for ``rows`` members."""
        return StackForward(self, rows)


class StackForward:
    """The forward pass of up to ``rows`` members, each with parameters and state of its own.

    Every member goes through products of its own in BLAS, of shapes that do not depend on how many
    others there are: its outputs have the same bits in any batch and any row.
    """

    def __init__(self, stack: Stack, rows: int) -> None:
        self._operations = [layer.operation(rows) for layer in stack.layers]
        self._parameters = np.empty(stack.dimension, np.float32)  # of the member that is loaded
        self._spans = list(pairwise(accumulate((layer.size for layer in stack.layers), initial=0)))
        self._inputs = stack.layers[0].inputs
        self._reference = stack.reference

    def load(self, row: int, population: Population, member: int, seed: int = 0) -> None:
        """Begin an episode in ``row``: the member's parameters and its first state."""
        parameters = self._parameters
        population.write(member, parameters)
        for operation, (start, end) in zip(self._operations, self._spans, strict=True):
            operation.load(row, parameters[start:end])
            operation.begin(row, seed)
        if self._reference is not None:
            self._measure(row, self._reference)

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move the given members, in order, to the front."""
        for operation in self._operations:
            operation.keep(rows)

    def __call__(self, observations: Array) -> Array:
        """Outputs (k, outputs) of the first k members for observations (k, inputs) or (k, C, H, W).

        The result is overwritten by the next call.
        """
        hidden = observations.reshape(len(observations), *self._inputs)
        for operation in self._operations:
            hidden = operation(hidden)
        return hidden

    def _measure(self, row: int, seen: Array) -> None:
        """Pass the reference batch through the member's layers, and take the statistics on the way."""
        norms = [isinstance(operation, VirtualBatchNormOperation) for operation in self._operations]
        last = max(place for place, norm in enumerate(norms) if norm)
        for operation in self._operations[: last + 1]:
            if isinstance(operation, VirtualBatchNormOperation):
                operation.measure(row, seen)
            seen = operation.each(row, seen)
