"""The parts of a population's network: layers, and the operation that runs one for many members.

Nothing here needs torch, so that a worker starts without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from escalade.perturbation.low_rank import Part
from escalade.policies.activations import ACTIVATIONS, Array

Shape = tuple[int, ...]
"""Shape of a layer's input or output for one member: (numbers,), or (channels, height, width) of an image."""


@dataclass(frozen=True)
class Layer:
    """One layer's shapes, without numbers, and what runs it."""

    inputs: Shape
    """Shape of one member's inputs."""
    outputs: Shape
    """Shape of one member's outputs."""
    operation: Callable[[int, Sequence[Part]], Operation]
    """Makes room for a number of members, whose parameters are the given parts of the flat vector."""
    shapes: Sequence[Shape] = ()
    """Shapes of its parameters, as the flat vector holds them, in order."""


class Given(Protocol):
    """A member's parameters."""

    def write(self, part: Part, out: Array) -> None:
        """Write one of them into ``out``, shape (size,)."""
        ...


class Operation:
    """One layer of some members, each with parameters, and maybe a state, of its own.

    The outputs of a row must not depend on the other rows, nor on how many there are, to the
    last bit.

    Args:
        parts: the places of its parameters in the flat vector.
        parameters: the members' numbers of each, a block of shape (rows, ...).
        state: what else an episode changes, blocks of shape (rows, ...).
        activation: the name of the one that follows, if any.
    """

    def __init__(
        self,
        parts: Sequence[Part] = (),
        parameters: Sequence[Array] = (),
        state: Sequence[Array] = (),
        activation: str | None = None,
    ) -> None:
        self.parts, self.parameters, self.state = parts, parameters, state
        self._activate = ACTIVATIONS[activation].in_place if activation else None

    def share(self, center: Array) -> None:
        """Begin a generation around ``center``, shape (dimension,), whose numbers members may share."""

    def load(self, row: int, member: Given) -> None:
        """Give the member in ``row`` its parameters."""
        for part, block in zip(self.parts, self.parameters, strict=True):
            member.write(part, block[row].reshape(-1))

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


class FlattenOperation(Operation):
    """An image as the vector that torch's Flatten makes of it: channel by channel, row by row."""

    def __init__(self, rows: int, parts: Sequence[Part]) -> None:
        super().__init__()

    def __call__(self, x: Array) -> Array:
        return x.reshape(len(x), -1)

    def each(self, row: int, batch: Array) -> Array:
        return self(batch)


class ProductsOperation(Operation):
    """All products x_i * x_j with i <= j, where x_0 is 1 and the numbers of a vector are x_1, x_2, ...

    They stand in the order of j, then of i; 1 * 1 is left out. So the products of a longer vector begin
    with those of its first numbers.
    """

    def __init__(self, features: int, rows: int, parts: Sequence[Part]) -> None:
        super().__init__()
        self._later, self._earlier = np.tril_indices(features, 1, features + 1)
        self._seen = block(rows, features + 1)
        self._seen[:, 0] = 1.0
        self._out, self._other = (block(rows, product_count(features)) for _ in range(2))

    def __call__(self, x: Array) -> Array:
        seen, out, other = self._seen[: len(x)], self._out[: len(x)], self._other[: len(x)]
        seen[:, 1:] = x
        # `mode` lets numpy write into `out` without a buffer.
        np.take(x, self._later, axis=1, out=out, mode="clip")
        np.take(seen, self._earlier, axis=1, out=other, mode="clip")
        out *= other
        return out

    def each(self, row: int, batch: Array) -> Array:
        seen = np.concatenate([np.ones((len(batch), 1), np.float32), batch], axis=1)
        found: Array = batch[:, self._later] * seen[:, self._earlier]
        return found


def product_count(features: int) -> int:
    """Count the products of :class:`ProductsOperation` for ``features``."""
    return features * (features + 3) // 2


def block(*shape: int) -> NDArray[Any]:
    """Zeros of float32."""
    return np.zeros(shape, dtype=np.float32)
