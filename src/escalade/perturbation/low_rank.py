"""Low-rank noise: a matrix is perturbed by the product of two thin matrices.

Sarkar et al. 2025, "Evolution Strategies at the Hyperscale" (arXiv 2511.16652), section 4: for a matrix of
shape (m, n), ``noise = A B^T / sqrt(r)`` with A of shape (m, r), B of shape (n, r) and standard normal
entries. Each entry of the noise has mean 0 and variance 1, as with full rank. A member needs r (m + n)
numbers instead of m n, and its product with an input is the center's product plus a cheap correction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from escalade.errors import InputError
from escalade.perturbation.population import Center, Draws, NoiseSource, Vector, Weights
from escalade.support.numbers import whole_number

Indices = Sequence[int] | NDArray[np.integer]
"""Numbers of perturbations of a generation, counted from 0."""

AT_ONCE = 2**18  # numbers of noise that a sum gathers at once, or an eighth of the parameters if that is more


@dataclass(frozen=True)
class Part:
    """One parameter's slice of the flat vector, and its slice of a perturbation's numbers.

    With ``rank`` 0 the numbers are the noise itself, one for each entry of the parameter.
    """

    shape: tuple[int, int]
    """Shape of the parameter as a matrix: (m, n), or (size, 1) if it has fewer than two axes."""
    rank: int
    start: int
    """Start of the parameter in the flat vector."""
    begin: int
    """Start of the parameter's numbers in a perturbation."""

    @property
    def size(self) -> int:
        """Number of entries of the parameter."""
        return self.shape[0] * self.shape[1]

    @property
    def length(self) -> int:
        """Number of random numbers that the parameter's noise needs."""
        return self.rank * sum(self.shape) if self.rank else self.size

    @cached_property
    def stretch(self) -> slice:
        """Slice of the parameter in the flat vector."""
        return slice(self.start, self.start + self.size)

    def numbers(self, drawn: Vector) -> Vector:
        """Return this part of a perturbation's numbers, shape (..., length)."""
        return drawn[..., self.begin : self.begin + self.length]

    def factors(self, drawn: Vector) -> tuple[Vector, Vector]:
        """Return a perturbation's ``A^T``, shape (..., r, m), and ``B^T``, shape (..., r, n)."""
        numbers, (m, n) = self.numbers(drawn), self.shape
        first, second = numbers[..., : self.rank * m], numbers[..., self.rank * m :]
        above = drawn.shape[:-1]
        return first.reshape(*above, self.rank, m), second.reshape(*above, self.rank, n)

    def write(self, drawn: Any, scale: Any, out: Any) -> None:
        """Write ``scale`` times the noise into ``out``, shape (size,).

        ``drawn`` and ``out`` are arrays, or tensors of one device.
        """
        if not isinstance(out, np.ndarray):
            self._write_tensor(drawn, scale, out)
            return
        if not self.rank:
            np.multiply(self.numbers(drawn), scale, out=out, dtype=out.dtype)
            return
        a, b = self.factors(drawn)
        scaled = np.multiply(a.T, scale / math.sqrt(self.rank), dtype=out.dtype)
        if self.rank == 1:
            np.multiply(scaled, b, out=out.reshape(self.shape))
        else:
            np.matmul(scaled, b.astype(out.dtype, copy=False), out=out.reshape(self.shape))

    def _write_tensor(self, drawn: Any, scale: float, out: Any) -> None:
        if self.rank:
            a, b = self.factors(drawn)
            out.view(self.shape).addmm_(a.T, b, beta=0, alpha=scale / math.sqrt(self.rank))
        else:
            out.copy_(self.numbers(drawn)).mul_(scale)


@dataclass(frozen=True)
class LowRank:
    """Source of noise whose matrices have at most rank ``rank``.

    Vectors have full noise. A matrix also has full noise if its factors would be as large as the noise
    itself.

    Args:
        noise: Source of the random numbers.
        rank: r, at least 1.
        shapes: Shape of each parameter, in the order of the flat vector. A parameter with more than two axes
            counts as a matrix of the first axis by all others, such as (filters, channels * height * width).

    Raises:
        InputError: The rank is not a whole number of at least 1.
    """

    noise: NoiseSource
    rank: int
    shapes: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        whole_number(self.rank, "rank", 1)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parameters, in order."""
        return tuple(parts_of(self.shapes, self.rank))

    @cached_property
    def dimension(self) -> int:
        """Parameters of one member."""
        return sum(part.size for part in self.parts)

    @cached_property
    def length(self) -> int:
        """Number of random numbers that a perturbation needs."""
        return sum(part.length for part in self.parts)

    @property
    def address(self) -> LowRank:
        """This source, with its numbers replaced by their address if they have one."""
        return replace(self, noise=getattr(self.noise, "address", self.noise))

    def draw(self, seed: int, generation: int, count: int, dimension: int) -> LowRankDraws:
        """Return the ``count`` perturbations of a generation of the search with ``seed``.

        Raises:
            InputError: ``dimension`` is not the number of parameters of the shapes.
        """
        if dimension != self.dimension:
            raise InputError(
                f"the shapes of the low-rank noise have {self.dimension} parameters, but x0 has {dimension}"
            )
        return self._draws(self.noise.draw(seed, generation, count, self.length))

    def room(self, *shape: int, dtype: DTypeLike = np.float32) -> Any:
        """Return uninitialized memory on the device that generates the noise: here an array."""
        return np.empty(shape, dtype)

    def placed(self, values: Any) -> Any:
        """Return values as float32, on the device that generates the noise."""
        return np.asarray(values, np.float32)

    def _draws(self, drawn: Draws) -> LowRankDraws:
        return LowRankDraws(self, drawn)


@dataclass(frozen=True)
class LowRankDraws:
    """Low-rank perturbations of one generation."""

    source: LowRank
    drawn: Draws

    def numbers(self, number: int) -> Vector:
        """Return the random numbers of a perturbation, shape (length,), in new memory."""
        found: Vector = self.rows([number])[0]
        return found

    def rows(self, which: Indices, out: Any = None) -> Vector:
        """Return the random numbers of k perturbations, shape (k, length), in ``out`` or in new memory."""
        made = np.empty((len(which), self.source.length), np.float32) if out is None else out
        for row, number in zip(made, which, strict=True):
            self.drawn.write(int(number), 1.0, row)
        return made

    def write(self, number: int, scale: float | Center, out: Center) -> None:
        """Write ``scale * noise_number`` into ``out``; ``scale`` is one number for all parameters."""
        numbers = self.numbers(number)
        for part in self.source.parts:
            part.write(numbers, scale, out[part.stretch])

    def weighted_sum(self, weights: Weights, dtype: DTypeLike = np.float32) -> Center:
        """Return ``sum_k weights[k] * noise_k``: a product ``(A * weights)^T B`` per matrix (section 4.2)."""
        total = np.zeros(self.source.dimension, dtype)
        for some, numbers in self._gathered(weights):
            cast, drawn = some.astype(dtype), numbers.astype(dtype, copy=False)
            for part in self.source.parts:
                _add(part, cast, drawn, total[part.stretch])
        return total

    def _gathered(self, weights: Weights) -> Iterator[tuple[NDArray[np.float64], Vector]]:
        """Yield nonzero weights, shape (k,), and their perturbations' numbers, shape (k, length)."""
        values = np.asarray(weights, np.float64)
        used = np.flatnonzero(values)
        rows = max(1, max(AT_ONCE, self.source.dimension // 8) // self.source.length)
        room = np.empty((min(rows, len(used)), self.source.length), np.float32)
        for low in range(0, len(used), rows):
            some = used[low : low + rows]
            yield values[some], self.rows(some, room[: len(some)])


def noise_length(shapes: Sequence[tuple[int, ...]], rank: int) -> int:
    """Return the number of random numbers that a perturbation of these parameters needs."""
    return sum(part.length for part in parts_of(shapes, rank))


def parts_of(shapes: Sequence[tuple[int, ...]], rank: int) -> list[Part]:
    """Return the parameters of these shapes, one after the other. With rank 0 all noise is full."""
    parts: list[Part] = []
    start = begin = 0
    for shape in shapes:
        part = Part(*_matrix(shape, rank), start, begin)
        parts.append(part)
        start, begin = start + part.size, begin + part.length
    return parts


def _matrix(shape: tuple[int, ...], rank: int) -> tuple[tuple[int, int], int]:
    """Return a parameter's shape as a matrix, and the rank of its noise, 0 for full noise."""
    size = math.prod(shape)
    if len(shape) < 2 or size == 0:
        return (size, 1), 0
    m, n = shape[0], size // shape[0]
    return (m, n), rank if rank * (m + n) < m * n else 0


def _add(part: Part, weights: Center, numbers: Center, total: Center) -> None:
    """Add the weighted sum of a part's noise to ``total``, shape (size,)."""
    if not part.rank:
        # Added by NumPy: the rounding of a BLAS product depends on the number of threads.
        total += np.add.reduce(part.numbers(numbers) * weights[:, None], axis=0)
        return
    import torch

    from escalade.support.exact import one_torch_thread

    a, b = part.factors(numbers)
    scaled = (a * (weights / math.sqrt(part.rank))[:, None, None]).astype(total.dtype)
    left = torch.from_numpy(scaled.reshape(-1, part.shape[0]))
    right = torch.from_numpy(np.ascontiguousarray(b).reshape(-1, part.shape[1]))
    into = torch.from_numpy(total.reshape(part.shape))
    with one_torch_thread():
        into.addmm_(left.T, right)
