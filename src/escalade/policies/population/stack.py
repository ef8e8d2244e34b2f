"""Stacks of layers, which run a whole population as one batch.

Nothing here needs torch, so that a worker starts without it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from escalade.perturbation import LowRank, NoiseSource, Population
from escalade.perturbation.factors import member_of
from escalade.perturbation.low_rank import Part, parts_of
from escalade.policies.activations import Array
from escalade.policies.population.layers import Layer, MemberReader, Shape
from escalade.policies.population.virtual_batch import VirtualBatchNormOperation


@dataclass(frozen=True, eq=False)
class Stack:
    """A sequence of layers. A member's flat vector holds the parameters of each layer in turn."""

    layers: tuple[Layer, ...]
    reference: Array | None = None
    """Observations for virtual batch normalization, as network inputs, (batch, *shape)."""

    @property
    def shapes(self) -> list[Shape]:
        """Shapes of one member's parameters, in the order of the flat vector."""
        return [shape for layer in self.layers for shape in layer.shapes]

    @property
    def dimension(self) -> int:
        """Number of parameters of one member."""
        return sum(map(math.prod, self.shapes))

    @property
    def inputs(self) -> int:
        """Number of inputs of the first layer."""
        return math.prod(self.layers[0].inputs)

    @property
    def outputs(self) -> int:
        """Number of outputs of the last layer."""
        return math.prod(self.layers[-1].outputs)

    def forward(self, rows: int, source: NoiseSource | None = None) -> StackForward:
        """Return a forward pass for up to ``rows`` members with noise from ``source``."""
        return StackForward(self, rows, source)


class StackForward:
    """Forward pass of up to ``rows`` members, each with its own parameters and state.

    Every member has its own products in BLAS, whose shapes do not depend on the number of other members. Its
    outputs are therefore bit-identical in any batch and any row. With low-rank noise, members share products
    with the center's matrices, which have the same property.
    """

    def __init__(self, stack: Stack, rows: int, source: NoiseSource | None) -> None:
        self._source = source if isinstance(source, LowRank) else None
        parts = iter(parts_of(stack.shapes, 0) if self._source is None else self._source.parts)
        self._operations = [
            layer.operation(rows, list(islice(parts, len(layer.shapes)))) for layer in stack.layers
        ]
        self._parameters = np.empty(stack.dimension, np.float32)  # buffer for loading a member
        self._inputs = stack.layers[0].inputs
        self._reference = stack.reference

    def begin(self, center: Array | None) -> None:
        """Begin a generation of members around ``center``, whose matrices they may share."""
        if center is not None:
            for operation in self._operations:
                operation.share(center)

    def load(self, row: int, population: Population, member: int, seed: int = 0) -> None:
        """Begin an episode in ``row``, with the member's parameters and its initial state."""
        reader: MemberReader
        if self._source is None:
            population.write(member, self._parameters)
            reader = _FullMember(self._parameters)
        else:
            reader = member_of(self._source, population, member)
        for operation in self._operations:
            operation.load(row, reader)
            operation.begin(row, seed)
        if self._reference is not None:
            self._measure(row, self._reference)

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move the members in ``rows``, in order, to the front."""
        for operation in self._operations:
            operation.keep(rows)

    def __call__(self, observations: Array) -> Array:
        """Return outputs (k, outputs) of the first k members for observations (k, inputs) or (k, C, H, W).

        The next call overwrites the result.
        """
        hidden = observations.reshape(len(observations), *self._inputs)
        for operation in self._operations:
            hidden = operation(hidden)
        return hidden

    def _measure(self, row: int, seen: Array) -> None:
        """Pass the reference batch through the member's layers, and measure its statistics."""
        norms = [isinstance(operation, VirtualBatchNormOperation) for operation in self._operations]
        last = max(place for place, norm in enumerate(norms) if norm)
        for operation in self._operations[: last + 1]:
            if isinstance(operation, VirtualBatchNormOperation):
                operation.measure(row, seen)
            seen = operation.each(row, seen)


class _FullMember(NamedTuple):
    """A member's parameters, shape (dimension,)."""

    parameters: Array

    def write(self, part: Part, out: Array) -> None:
        out[:] = self.parameters[part.stretch]
