"""The numbers of a vector and the products of any two of them: what a quadratic policy is linear in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from escalade.policies.activations import Array
from escalade.policies.population.layers import Operation, Shape, block


@dataclass(frozen=True)
class ProductsLayer:
    """All products x_i * x_j with i <= j, where x_0 is 1 and the numbers of the vector are x_1, x_2, ...

    They stand in the order of j, then of i; 1 * 1 is left out. So the products of a longer vector begin
    with those of its first numbers.
    """

    features: int
    size: ClassVar[int] = 0

    @property
    def inputs(self) -> Shape:
        """One number a feature."""
        return (self.features,)

    @property
    def outputs(self) -> Shape:
        """The features, their squares and the products of pairs."""
        return (product_count(self.features),)

    def operation(self, rows: int) -> Operation:
        """Room for ``rows`` members."""
        return _ProductsOperation(self.features, rows)


class _ProductsOperation(Operation):
    def __init__(self, features: int, rows: int) -> None:
        super().__init__([])
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
    """Count the outputs of :class:`ProductsLayer` for ``features``."""
    return features * (features + 3) // 2
