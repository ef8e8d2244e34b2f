"""Layers of a population's network, and the operations that run them for many members.

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
"""Shape of one member's input or output of a layer: (numbers,), or (channels, height, width) for an image."""


@dataclass(frozen=True)
class Layer:
    """Shapes of one layer, without its numbers, and its operation."""

    inputs: Shape
    """Shape of one member's inputs."""
    outputs: Shape
    """Shape of one member's outputs."""
    operation: Callable[[int, Sequence[Part]], Operation]
    """Function from a number of members, and the parts of the flat vector, to the operation."""
    shapes: Sequence[Shape] = ()
    """Shapes of its parameters, in the order of the flat vector."""


class MemberReader(Protocol):
    """Access to a member's parameters."""

    def write(self, part: Part, out: Array) -> None:
        """Write one parameter into ``out``, shape (size,)."""
        ...


class Operation:
    """One layer of several members, each with its own parameters and possibly a state.

    The outputs of a row must not depend on the other rows or on their number: they must be bit-identical.

    Args:
        parts: positions of its parameters in the flat vector.
        parameters: the members' numbers, one block of shape (rows, ...) per parameter.
        state: blocks of shape (rows, ...) that change during an episode.
        activation: name of the activation after the layer, if any.
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

    def load(self, row: int, member: MemberReader) -> None:
        """Load a member's parameters into ``row``."""
        for part, block in zip(self.parts, self.parameters, strict=True):
            member.write(part, block[row].reshape(-1))

    def begin(self, row: int, seed: int) -> None:
        """Begin an episode with this seed in ``row``, with its initial state."""
        for part in self.state:
            part[row] = 0.0

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move the members in ``rows``, in order, to the front."""
        for part in (*self.parameters, *self.state):
            part[: len(rows)] = part[rows]

    def __call__(self, x: Array) -> Array:
        """Return the first k members' outputs for ``x``, shape (k, *inputs), valid until the next call."""
        raise NotImplementedError

    def each(self, row: int, batch: Array) -> Array:
        """Return the outputs of the member in ``row`` for a batch, shape (batch, *inputs), in new memory.

        Only layers that may come before virtual batch normalization implement it.
        """
        raise NotImplementedError

    def activated(self, out: Array) -> Array:
        """Apply the activation, if any, to ``out`` in place, and return it."""
        if self._activate is not None:
            self._activate(out)
        return out


class FlattenOperation(Operation):
    """Flatten images as torch does: channel by channel, row by row."""

    def __init__(self, rows: int, parts: Sequence[Part]) -> None:
        super().__init__()

    def __call__(self, x: Array) -> Array:
        return x.reshape(len(x), -1)

    def each(self, row: int, batch: Array) -> Array:
        return self(batch)


class ProductsOperation(Operation):
    """All products x_i * x_j with i <= j, where x_0 is 1 and the numbers of a vector are x_1, x_2, ...

    They are sorted by j, then by i, without 1 * 1. The products of a longer vector therefore begin with those
    of its first numbers.
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
        # With `mode`, numpy writes into `out` without a buffer.
        np.take(x, self._later, axis=1, out=out, mode="clip")
        np.take(seen, self._earlier, axis=1, out=other, mode="clip")
        out *= other
        return out

    def each(self, row: int, batch: Array) -> Array:
        seen = np.concatenate([np.ones((len(batch), 1), np.float32), batch], axis=1)
        found: Array = batch[:, self._later] * seen[:, self._earlier]
        return found


def product_count(features: int) -> int:
    """Return the number of products of :class:`ProductsOperation`."""
    return features * (features + 3) // 2


def block(*shape: int) -> NDArray[Any]:
    """Return zeros of float32."""
    return np.zeros(shape, dtype=np.float32)
