"""Products of rows with a matrix in which a row's bits depend neither on its place nor on the other rows.

BLAS computes a product in tiles, and the last bit of a row depends on the tile that it is in. Which tiles
there are depends on the kernel that BLAS takes for this processor, and on the product's shape. So there are
three ways to call it here, and each matrix gets the fastest whose bits are right on this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

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
