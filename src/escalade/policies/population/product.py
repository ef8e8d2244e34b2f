"""Products of a population's rows with the members' matrices, individual or shared ones.

With low-rank noise a member's matrix is ``center + a b^T``. Then ``x (center + a b^T)`` is one product of all
rows with the center, which BLAS reads from memory once, plus ``(x a) b^T`` for each row: Sarkar et al. 2025
(arXiv 2511.16652), section 4.3.

A row's result must be bit-identical at every position and beside any other rows. But BLAS computes a product
in tiles, and the rounding of a row depends on its tile. The tiles depend on the BLAS kernel for this
processor, and on the product's shape. There are therefore three ways to call BLAS here, and each matrix uses
the fastest of those that are correct on this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from escalade.perturbation.low_rank import Part
from escalade.policies.activations import Array
from escalade.policies.population.layers import Operation, block

_BLOCK = 16
_MOST = 64  # rows per call of BLAS; more rows would not fit into the cache
_SUMS = 512


def by_calls(rows: Array, matrix: Array, out: Array) -> None:
    """Pass up to 64 rows per call to BLAS; correct for OpenBLAS on processors with AVX-512."""
    for low in range(0, len(rows), _MOST):
        np.matmul(rows[low : low + _MOST], matrix, out=out[low : low + _MOST])


def by_blocks(rows: Array, matrix: Array, out: Array) -> None:
    """Pass 16 rows per call to BLAS, transposed; correct for OpenBLAS on processors with AVX2.

    There its tiles are 16 numbers long in one direction, and 6 or 4 in the other. 16 rows along the first
    direction all lie in the same tile, so a row's rounding does not depend on its place among them.
    """
    blocks = (-1, _BLOCK, rows.shape[1])
    found = np.matmul(matrix.T, rows.reshape(blocks).transpose(0, 2, 1))
    out.reshape(-1, _BLOCK, matrix.shape[1])[...] = found.transpose(0, 2, 1)


def by_rows(rows: Array, matrix: Array, out: Array) -> None:
    """Pass one row per call to BLAS; correct everywhere, but several times slower."""
    np.matmul(rows[:, None], matrix, out=out[:, None])


class Way(NamedTuple):
    """A way to call BLAS."""

    multiple: int
    """The number of rows must be a multiple of this."""
    multiply: Callable[[Array, Array, Array], None]
    """Function that writes the product of its first two arguments to the third.

    Their shapes are (k, features), (features, units) and (k, units).
    """


WAYS = Way(8, by_calls), Way(_BLOCK, by_blocks), Way(1, by_rows)
"""Ways from the fastest to the slowest; the last is correct everywhere."""


@cache
def way(features: int, units: int) -> Way:
    """Return the fastest way that is correct on this machine for matrices of shape (features, units)."""
    return next(
        candidate for candidate in WAYS if candidate.multiple == 1 or is_correct(candidate, features, units)
    )


def is_correct(candidate: Way, features: int, units: int) -> bool:
    """Test whether a row's result is bit-identical at every position, for every number of rows.

    Two orders of a sum often round alike, so there are at least 512 sums at each position.
    """
    chance = np.random.default_rng(0)
    matrix = chance.standard_normal((features, units), np.float32)
    counts = range(candidate.multiple, _MOST + 1, candidate.multiple)
    for row in chance.standard_normal((-(-_SUMS // units), features), np.float32):
        rows, out = np.tile(row, (_MOST, 1)), np.empty((_MOST, units), np.float32)
        candidate.multiply(rows[: counts[0]], matrix, out[: counts[0]])
        expected = out[0].copy()
        for count in counts:
            candidate.multiply(rows[:count], matrix, out[:count])
            if not (out[:count] == expected).all():
                return False
    return True


def product(rows: int, parts: Sequence[Part], activation: str | None = None) -> Operation:
    """Allocate the products of ``rows`` members, each row with its member's matrix, plus a bias.

    Args:
        rows: largest number of members.
        parts: the matrix, shape (features, units), and the bias, if there is one. The vector holds torch's
            weight transposed, because a row times a matrix is several times faster here than a matrix times
            a column.
        activation: name of the activation after the product, if any.
    """
    kind = SharedProduct if parts[0].rank else OwnProduct
    return kind(rows, parts, activation)


class OwnProduct(Operation):
    """A vector-matrix product in BLAS for each member, whose shape does not depend on other members."""

    def __init__(self, rows: int, parts: Sequence[Part], activation: str | None = None) -> None:
        part, *biases = parts
        # A block per layer instead of a row per member, because products then read memory a fifth faster.
        self._weight = block(rows, *part.shape)
        self._bias = block(rows, part.shape[1]) if biases else None
        parameters = [self._weight] if self._bias is None else [self._weight, self._bias]
        super().__init__(parts, parameters, activation=activation)
        self._out = block(rows, 1, part.shape[1])
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


class SharedProduct(Operation):
    """One product of all rows with the center's matrix, plus each row's correction by a member's factors."""

    def __init__(self, rows: int, parts: Sequence[Part], activation: str | None = None) -> None:
        self._part, *self._bias = parts
        (features, units), rank = self._part.shape, self._part.rank
        self._a = block(rows, rank, features)
        # The bias is one more thin factor, whose coefficient is always 1, and is added in the same call.
        self._b = block(rows, rank + len(self._bias), units)
        super().__init__(parts, [self._a, self._b], activation=activation)
        self._center = block(0, 0)  # until share() is called
        padded = rows + max(each.multiple for each in WAYS)
        self._seen, self._out = block(padded, features), block(padded, units)
        self._thin = np.ones((rows, 1, self._b.shape[1]), np.float32)
        self._found = self._thin[:, 0, :rank, None]
        self._correction = block(rows, 1, units)

    def share(self, center: Array) -> None:
        self._way = way(*self._part.shape)  # chosen here, where numpy runs on one thread
        self._center = center[self._part.stretch].reshape(self._part.shape)  # not copied

    def load(self, row: int, member: Any) -> None:
        self._a[row], self._b[row, : self._part.rank] = member.factors(self._part)
        for part in self._bias:
            member.write(part, self._b[row, -1])

    def __call__(self, x: Array) -> Array:
        count, seen = len(x), x
        padded = -(-count // self._way.multiple) * self._way.multiple
        if padded > count:
            seen = self._seen
            seen[:count] = x
        self._way.multiply(seen[:padded], self._center, self._out[:padded])
        out, correction = self._out[:count], self._correction[:count]
        np.matmul(self._a[:count], x[:, :, None], out=self._found[:count])
        np.matmul(self._thin[:count], self._b[:count], out=correction)
        out += correction[:, 0]
        return self.activated(out)

    def each(self, row: int, batch: Array) -> Array:
        out: Array = batch @ self._center
        out += (batch @ self._a[row].T) @ self._b[row, : self._part.rank]
        if self._bias:
            out += self._b[row, -1]
        return self.activated(out)
