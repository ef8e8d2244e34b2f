"""Products of a population's rows with a matrix that all members share, and a correction for each.

With noise of low rank a member's matrix is ``centre + a b^T``. So ``x (centre + a b^T)`` is one product of
all rows with the centre, which BLAS reads from memory once, and for each row ``(x a) b^T``: Sarkar et al.
2025 (arXiv 2511.16652), section 4.3.

A row's bits must depend neither on its place nor on the other rows. But BLAS computes a product in tiles, and
the last bit of a row depends on the tile that it is in. Which tiles there are depends on the kernel that BLAS
takes for this processor, and on the product's shape. So there are three ways to call it here, and each matrix
gets the fastest whose bits are right on this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from escalade.perturbation.factors import Member
from escalade.perturbation.low_rank import Part
from escalade.policies.activations import Array

_BLOCK = 16
_MOST = 64  # rows in a call of BLAS: with more, the rows leave the cache
_SUMS = 512


def by_calls(rows: Array, matrix: Array, out: Array) -> None:
    """Give BLAS up to 64 rows a call: right for OpenBLAS on processors with AVX-512."""
    for low in range(0, len(rows), _MOST):
        np.matmul(rows[low : low + _MOST], matrix, out=out[low : low + _MOST])


def by_blocks(rows: Array, matrix: Array, out: Array) -> None:
    """Give BLAS 16 rows a call, and the transposed product: right for OpenBLAS on processors with AVX2.

    Its tiles there are 16 numbers long in one direction, and 6 or 4 in the other. So 16 rows that lie in
    the first one are all in the same place of a tile, and a row's bits do not depend on which it is.
    """
    blocks = (-1, _BLOCK, rows.shape[1])
    found = np.matmul(matrix.T, rows.reshape(blocks).transpose(0, 2, 1))
    out.reshape(-1, _BLOCK, matrix.shape[1])[...] = found.transpose(0, 2, 1)


def by_rows(rows: Array, matrix: Array, out: Array) -> None:
    """Give BLAS one row a call: right everywhere, and several times slower."""
    np.matmul(rows[:, None], matrix, out=out[:, None])


class Way(NamedTuple):
    """A way to call BLAS."""

    multiple: int
    """The number of rows is a multiple of this."""
    multiply: Callable[[Array, Array, Array], None]
    """Writes the products of rows, shape (k, features), with a matrix, shape (features, units), to its
    third argument, shape (k, units)."""


WAYS = Way(8, by_calls), Way(_BLOCK, by_blocks), Way(1, by_rows)
"""The fastest first; the last is right everywhere."""


@cache
def way(features: int, units: int) -> Way:
    """Find the fastest way that is right on this machine for matrices of the shape (features, units)."""
    return next(
        candidate for candidate in WAYS if candidate.multiple == 1 or is_right(candidate, features, units)
    )


def is_right(candidate: Way, features: int, units: int) -> bool:
    """Try out whether a row gets the same bits at every place of every number of rows.

    Two orders of a sum often give the same bits, so there are at least 512 sums at each place.
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


class SharedProduct:
    """The product of up to ``rows`` rows, each of a member of its own, with the members' matrix, plus a bias.

    Args:
        rows: members there is room for.
        part: the matrix, of shape (features, units).
        bias: the vector that is added, of shape (units,); None for none.
    """

    def __init__(self, rows: int, part: Part, bias: Part | None = None) -> None:
        self._part, self._bias = part, bias
        padded = rows + max(each.multiple for each in WAYS)
        self._a = np.zeros((rows, part.rank, part.shape[0]), np.float32)
        # The bias is one more thin factor, whose number is always 1: added in the same call.
        self._b = np.zeros((rows, part.rank + (bias is not None), part.shape[1]), np.float32)
        self.parameters = [self._a, self._b]
        """Each member's own, to be kept with its row."""
        self._center: Array = np.zeros((0, 0), np.float32)  # until it is shared
        self._seen, self._out = (np.zeros((padded, size), np.float32) for size in part.shape)
        self._thin = np.ones((rows, 1, self._b.shape[1]), np.float32)
        self._found = self._thin[:, 0, : part.rank, None]
        self._correction = np.zeros((rows, 1, part.shape[1]), np.float32)

    def share(self, center: Array) -> None:
        """Take the matrix out of the centre's parameters, shape (dimension,); it is not copied."""
        self._way = way(*self._part.shape)  # found here, where numpy computes on one thread
        self._center = center[self._part.stretch].reshape(self._part.shape)

    def load(self, row: int, member: Member) -> None:
        """Give the member in ``row`` its factors and its bias."""
        self._a[row], self._b[row, : self._part.rank] = member.factors(self._part)
        if self._bias is not None:
            member.write(self._bias, self._b[row, -1])

    def __call__(self, x: Array) -> Array:
        """The products of the first k rows, shape (k, units). The next call overwrites them."""
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
        return out

    def each(self, row: int, batch: Array) -> Array:
        """The products of a batch with the matrix of the member in ``row``, in new memory."""
        out: Array = batch @ self._center
        out += (batch @ self._a[row].T) @ self._b[row, : self._part.rank]
        if self._bias is not None:
            out += self._b[row, -1]
        return out
