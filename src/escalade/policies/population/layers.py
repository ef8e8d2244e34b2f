"""The parts of a population's network: layers, and the operation that runs one for many members.

Nothing here needs torch, so that a worker starts without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from escalade.perturbation.factors import Member
from escalade.perturbation.low_rank import Part
from escalade.policies.activations import ACTIVATIONS, Array
from escalade.policies.population.shared_product import SharedProduct

Shape = tuple[int, ...]
"""Shape of a layer's input or output for one member: (numbers,), or (channels, height, width) of an image."""


class Layer(Protocol):
    """One layer's shapes, without numbers."""

    @property
    def inputs(self) -> Shape:
        """Shape of one member's inputs."""
        ...

    @property
    def outputs(self) -> Shape:
        """Shape of one member's outputs."""
        ...

    @property
    def size(self) -> int:
        """Number of parameters."""
        ...

    def operation(self, rows: int) -> Operation:
        """Room for ``rows`` members."""
        ...


@runtime_checkable
class SharingLayer(Layer, Protocol):
    """A layer that has a faster operation where the members' noise has low rank."""

    matrices: ClassVar[int]
    """The number of its parameters that are matrices; they stand first."""

    def sharing(self, rows: int, parts: Sequence[Part]) -> SharingOperation:
        """Room for ``rows`` members, whose parameters are ``parts``: its matrices have noise of low rank."""
        ...


class Operation:
    """One layer of up to ``rows`` members, each with parameters, and maybe a state, of its own.

    The outputs of a row must not depend on the other rows, nor on how many there are, to the
    last bit. ``parameters`` are blocks of shape (rows, ...) in the order of the flat vector; what
    else an episode changes is in ``state``. ``activation`` is the name of the one that follows, if any.
    """

    def __init__(
        self, parameters: list[Array], state: list[Array] | None = None, activation: str | None = None
    ) -> None:
        self.parameters = parameters
        self.state = state or []
        self._activate = ACTIVATIONS[activation].in_place if activation else None

    def load(self, row: int, parameters: Array) -> None:
        """Give the member in ``row`` its parameters, shape (size,)."""
        start = 0
        for part in self.parameters:
            end = start + part[row].size
            part[row] = parameters[start:end].reshape(part[row].shape)
            start = end

    def begin(self, row: int, seed: int) -> None:
        """Begin an episode in ``row``: the state that an episode with this seed starts from."""
        for part in self.state:
            part[row] = 0.0

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move the given members, in order, to the front."""
        for part in (*self.parameters, *self.state):
            part[: len(rows)] = part[rows]

    def __call__(self, x: Array) -> Array:
        """The first k members' outputs for ``x``, shape (k, *inputs). The next call overwrites them."""
        raise NotImplementedError

    def each(self, row: int, batch: Array) -> Array:
        """Return the outputs of the member in ``row`` for a batch, shape (batch, *inputs), in new memory.

        Only layers that may stand before virtual batch normalisation have it.
        """
        raise NotImplementedError

    def activated(self, out: Array) -> Array:
        """``out``, after the activation in its place, where there is one."""
        if self._activate is not None:
            self._activate(out)
        return out


class SharedWeight(Protocol):
    """A matrix that all members share, and each member's factors and bias of its own."""

    @property
    def parameters(self) -> list[Array]:
        """The members' own, blocks of shape (rows, ...)."""
        ...

    def share(self, center: Array) -> None:
        """Take the matrix out of the centre's parameters, shape (dimension,)."""
        ...

    def load(self, row: int, member: Member) -> None:
        """Give the member in ``row`` its own."""
        ...


class SharingOperation(Operation):
    """An operation whose members share the centre's matrices: a member's own parameters are its factors."""

    def __init__(
        self,
        weights: Sequence[SharedWeight],
        state: list[Array] | None = None,
        activation: str | None = None,
    ) -> None:
        self._weights = weights
        super().__init__([array for weight in weights for array in weight.parameters], state, activation)

    def share(self, center: Array) -> None:
        """Take over the matrices of the centre, shape (dimension,)."""
        for weight in self._weights:
            weight.share(center)

    def load_member(self, row: int, member: Member) -> None:
        """Give the member in ``row`` its factors and biases."""
        for weight in self._weights:
            weight.load(row, member)


@dataclass(frozen=True)
class VectorLayer:
    """The part that layers from a vector to a vector share."""

    features: int
    units: int

    @property
    def inputs(self) -> Shape:
        """One number a feature."""
        return (self.features,)

    @property
    def outputs(self) -> Shape:
        """One number a unit."""
        return (self.units,)


@dataclass(frozen=True)
class Linear(VectorLayer):
    """One linear layer and what follows it.

    The flat vector holds the weight as (features, units), torch's weight transposed: a row times a
    matrix is several times faster here than a matrix times a column.
    """

    bias: bool
    activation: str | None = None
    matrices: ClassVar[int] = 1

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.features * self.units + self.bias * self.units

    def operation(self, rows: int) -> Operation:
        """Room for ``rows`` members."""
        return _LinearOperation(self, rows)

    def sharing(self, rows: int, parts: Sequence[Part]) -> SharingOperation:
        """Room for ``rows`` members that share the centre's weight."""
        return _SharingLinear(self, rows, parts)


class _LinearOperation(Operation):
    """Every member is its own vector-matrix product in BLAS, of a shape that depends on no other."""

    def __init__(self, layer: Linear, rows: int) -> None:
        # A block per layer, not a row per member: products stream through memory a fifth faster.
        self._weight = block(rows, layer.features, layer.units)
        self._bias = block(rows, layer.units) if layer.bias else None
        parameters = [self._weight] if self._bias is None else [self._weight, self._bias]
        super().__init__(parameters, activation=layer.activation)
        self._out = block(rows, 1, layer.units)
        self._count = -1

    def __call__(self, x: Array) -> Array:
        count = len(x)
        if count != self._count:
            self._count = count
            self._used = self._weight[:count], self._out[:count], self._out[:count, 0, :]
            self._used_bias = None if self._bias is None else self._bias[:count]
        weight, out, hidden = self._used
        np.matmul(x[:, None, :], weight, out=out)
        if self._used_bias is not None:
            hidden += self._used_bias
        return self.activated(hidden)

    def each(self, row: int, batch: Array) -> Array:
        out: Array = batch @ self._weight[row]
        if self._bias is not None:
            out += self._bias[row]
        return self.activated(out)


class _SharingLinear(SharingOperation):
    def __init__(self, layer: Linear, rows: int, parts: Sequence[Part]) -> None:
        self._product = SharedProduct(rows, *parts)
        super().__init__([self._product], activation=layer.activation)

    def __call__(self, x: Array) -> Array:
        return self.activated(self._product(x))

    def each(self, row: int, batch: Array) -> Array:
        return self.activated(self._product.each(row, batch))


@dataclass(frozen=True)
class Flatten:
    """An image as the vector that torch's Flatten makes of it: channel by channel, row by row."""

    inputs: Shape
    size: ClassVar[int] = 0

    @property
    def outputs(self) -> Shape:
        """Shape of a vector with all numbers of the image."""
        return (int(np.prod(self.inputs)),)

    def operation(self, rows: int) -> Operation:
        """Room for ``rows`` members."""
        return _FlattenOperation([])


class _FlattenOperation(Operation):
    def __call__(self, x: Array) -> Array:
        return x.reshape(len(x), -1)

    def each(self, row: int, batch: Array) -> Array:
        return self(batch)


def block(*shape: int) -> NDArray[Any]:
    """Zeros of float32."""
    return np.zeros(shape, dtype=np.float32)
