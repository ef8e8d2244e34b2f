"""Stacks of layers: the policies that a whole population runs as one batch.

Nothing here needs torch, so that a worker starts without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from escalade.perturbation import LowRank, NoiseSource, Population
from escalade.perturbation.factors import member_of
from escalade.perturbation.low_rank import Part
from escalade.policies.activations import Array
from escalade.policies.population.layers import Layer, Operation, SharingLayer, SharingOperation
from escalade.policies.population.virtual_batch import VirtualBatchNormOperation


@dataclass(frozen=True, eq=False)
class Stack:
    """Layers one after the other. A member's flat parameters hold those of each layer in turn."""

    layers: tuple[Layer, ...]
    reference: Array | None = None
    """Observations for virtual batch normalisation, as the network gets them, (batch, *shape)."""

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

    def forward(self, rows: int, source: NoiseSource | None = None) -> StackForward:
        """Room for ``rows`` members whose noise is of ``source``."""
        if isinstance(source, LowRank):
            return LowRankForward(self, rows, source)
        return StackForward(self, [layer.operation(rows) for layer in self.layers])


class StackForward:
    """The forward pass of up to ``rows`` members, each with parameters and state of its own.

    Every member goes through products of its own in BLAS, of shapes that do not depend on how many
    others there are: its outputs have the same bits in any batch and any row.
    """

    def __init__(self, stack: Stack, operations: Sequence[Operation]) -> None:
        self._operations = operations
        self._parameters = np.empty(stack.dimension, np.float32)  # of the member that is loaded
        self._spans = list(pairwise(accumulate((layer.size for layer in stack.layers), initial=0)))
        self._inputs = stack.layers[0].inputs
        self._reference = stack.reference

    def begin(self, center: Array | None) -> None:
        """Begin a generation of members around ``center``; here each has its own parameters."""

    def load(self, row: int, population: Population, member: int, seed: int = 0) -> None:
        """Begin an episode in ``row``: the member's parameters and its first state."""
        self._give(row, population, member)
        for operation in self._operations:
            operation.begin(row, seed)
        if self._reference is not None:
            self._measure(row, self._reference)

    def _give(self, row: int, population: Population, member: int) -> None:
        """Give the member in ``row`` its parameters."""
        population.write(member, self._parameters)
        for operation, (start, end) in zip(self._operations, self._spans, strict=True):
            operation.load(row, self._parameters[start:end])

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


class LowRankForward(StackForward):
    """The forward pass of members whose noise has low rank: they share products with the centre's matrices.

    These products have one fixed number of rows, filled up with idle ones: so a member's outputs have the
    same bits in any batch and any row. Layers that cannot share have their members' parameters written out.
    """

    def __init__(self, stack: Stack, rows: int, source: LowRank) -> None:
        parts = iter(source.parts)
        operations: list[Operation] = []
        self._parts: list[list[Part]] = []  # of each layer
        for layer in stack.layers:
            own: list[Part] = []
            while sum(part.size for part in own) < layer.size:
                own.append(next(parts))
            self._parts.append(own)
            if isinstance(layer, SharingLayer) and all(part.rank for part in own[: layer.matrices]):
                operations.append(layer.sharing(rows, own))
            else:
                operations.append(layer.operation(rows))
        super().__init__(stack, operations)
        self._source = source

    def begin(self, center: Array | None) -> None:
        """Take over the centre's matrices, which all members of a generation share."""
        for operation in self._operations:
            if isinstance(operation, SharingOperation) and center is not None:
                operation.share(center)

    def _give(self, row: int, population: Population, member: int) -> None:
        """Give the member in ``row`` its factors, and what its layers do not share."""
        given = member_of(self._source, population, member)
        for operation, parts in zip(self._operations, self._parts, strict=True):
            if isinstance(operation, SharingOperation):
                operation.load_member(row, given)
            elif parts:
                for part in parts:
                    given.write(part, self._parameters[part.stretch])
                operation.load(row, self._parameters[parts[0].start : parts[-1].stretch.stop])
