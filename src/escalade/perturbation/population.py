"""A generation's members, and how each is rebuilt from its address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from escalade.perturbation.address import Stream, hash64
from escalade.support.shared import without_warnings

if TYPE_CHECKING:
    import torch

Vector = NDArray[np.float32]


class Population(Protocol):
    """What a strategy proposes. Small enough to send to every worker once per generation."""

    @property
    def size(self) -> int:
        """Number of members."""
        ...

    @property
    def dimension(self) -> int:
        """Parameters of one member."""
        ...

    def write(self, member: int, table: Vector, out: Vector) -> None:
        """Write the parameters of ``member``, shape (dimension,), into ``out``."""
        ...


def offsets(seed: int, generation: int, pairs: int, table: int, dimension: int) -> NDArray[np.int64]:
    """Where in a table of ``table`` floats each pair's perturbation starts; shape (pairs,)."""
    starts = np.uint64(table - dimension + 1)
    hashed = hash64(seed, int(Stream.NOISE), generation, np.arange(pairs))
    return (hashed % starts).astype(np.int64)


@dataclass(frozen=True)
class GaussianPopulation:
    """Members ``center + sign * scale * noise[offset:offset + dimension]``.

    ``scale`` is a number or a vector of shape (dimension,). With ``antithetic``, members 2k and
    2k + 1 are pair k with the signs +1 and -1; otherwise member k is pair k with the sign +1.
    Salimans et al. 2017, algorithm 2 and section 2.1.
    """

    center: Vector
    scale: float | Vector
    seed: int
    generation: int
    size: int
    table_size: int
    antithetic: bool = True

    @property
    def dimension(self) -> int:
        return len(self.center)

    @property
    def pairs(self) -> int:
        """Number of distinct perturbations."""
        return self.size // 2 if self.antithetic else self.size

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Start of every pair's perturbation in the table, shape (pairs,)."""
        return offsets(self.seed, self.generation, self.pairs, self.table_size, self.dimension)

    def write(self, member: int, table: Vector, out: Vector) -> None:
        pair, mirrored = divmod(member, 2) if self.antithetic else (member, 0)
        start = int(self.offsets[pair])
        np.multiply(table[start : start + self.dimension], self.scale, out=out)
        # Mirrored members subtract the very same product, so a pair's mean is the centre.
        (np.subtract if mirrored else np.add)(self.center, out, out=out)


@dataclass(frozen=True)
class DensePopulation:
    """Members written out, shape (size, dimension): for strategies whose members have no address."""

    vectors: Vector

    @property
    def size(self) -> int:
        return len(self.vectors)

    @property
    def dimension(self) -> int:
        return int(self.vectors.shape[1])

    def write(self, member: int, table: Vector, out: Vector) -> None:
        out[:] = self.vectors[member]


def write_all(population: Population, table: Vector) -> Vector:
    """Every member's parameters, shape (size, dimension)."""
    members = np.empty((population.size, population.dimension), dtype=np.float32)
    for member in range(population.size):
        population.write(member, table, members[member])
    return members


_BLOCK = 2**20  # floats of the sum that are held in cache while the table streams past


def weighted_noise_sum(
    table: Vector, starts: NDArray[np.int64], weights: Sequence[float] | NDArray[np.floating], dimension: int
) -> Vector:
    """``sum_k weights[k] * table[starts[k]:starts[k] + dimension]``, added in the order of k.

    Reads the table in place: beyond the result, no memory is taken. A weight of zero skips its
    perturbation.
    """
    # BLAS axpy through torch reads each perturbation once; numpy would need a temporary.
    import torch

    noise = torch.from_numpy(table) if table.flags.writeable else _borrow(table)
    total = torch.zeros(dimension)
    terms = [(int(s), float(w)) for s, w in zip(starts, weights, strict=True) if w != 0.0]
    for low in range(0, dimension, _BLOCK):
        block = total[low : low + _BLOCK]
        for start, weight in terms:
            block.add_(noise[start + low : start + low + len(block)], alpha=weight)
    return np.asarray(total.numpy())


def weighted_square_sum(
    table: Vector,
    starts: NDArray[np.int64],
    weights: Sequence[float] | NDArray[np.floating],
    dimension: int,
    shift: Vector | None = None,
) -> Vector:
    """``sum_k weights[k] * (table[starts[k]:starts[k] + dimension] - shift)**2``, in the order of k.

    ``shift`` has shape (dimension,); without it nothing is subtracted. Like
    :func:`weighted_noise_sum`, it reads the table in place and skips weights of zero.
    """
    import torch

    noise = torch.from_numpy(table) if table.flags.writeable else _borrow(table)
    total = torch.zeros(dimension)
    terms = [(int(s), float(w)) for s, w in zip(starts, weights, strict=True) if w != 0.0]
    moved = torch.empty(min(dimension, _BLOCK)) if shift is not None else None
    for low in range(0, dimension, _BLOCK):
        block = total[low : low + _BLOCK]
        for start, weight in terms:
            term = noise[start + low : start + low + len(block)]
            if shift is not None and moved is not None:
                origin = torch.from_numpy(shift[low : low + len(block)])
                term = torch.sub(term, origin, out=moved[: len(block)])
            block.addcmul_(term, term, value=weight)
    return np.asarray(total.numpy())


def _borrow(table: Vector) -> torch.Tensor:
    import torch

    with without_warnings():  # the table is read-only; nothing here writes to it
        return torch.from_numpy(table)
