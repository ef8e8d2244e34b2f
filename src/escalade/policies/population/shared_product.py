"""Products of a population's rows with a matrix that all members share, and a correction for each.

With noise of low rank a member's matrix is ``centre + a b^T``. So ``x (centre + a b^T)`` is one product of
all rows with the centre, which BLAS reads from memory once, and for each row ``(x a) b^T``: Sarkar et al.
2025 (arXiv 2511.16652), section 4.3.
"""

from __future__ import annotations

import numpy as np

from escalade.perturbation.factors import Member
from escalade.perturbation.low_rank import Part
from escalade.policies.activations import Array
from escalade.policies.population.row_products import WAYS, way


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
