"""Perturbations as slices of the noise table, and weighted sums of many of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import DTypeLike, NDArray

from escalade.errors import InputError
from escalade.perturbation.address import Stream, hash64
from escalade.perturbation.population import SMALL, Center, Vector, Weights
from escalade.support.machine import cores
from escalade.support.shared import without_warnings

if TYPE_CHECKING:
    import torch

_GATHERED = 2**17  # numbers gathered at once
_AT_ONCE = 64  # perturbations added in one call
_BLOCK = 2**20  # floats of the sum that stay in cache while the table is read


SMALLEST = 2**13  # floats; shorter blocks cost more in calls than in additions
THREADS_FROM = 2**26  # additions: some 30 ms of one core


def offsets(
    seed: int, generation: int, perturbations: int, table_size: int, dimension: int
) -> NDArray[np.int64]:
    """Return the start of each perturbation in a table of ``table_size`` floats, shape (perturbations,).

    Raises:
        InputError: a perturbation is longer than the table.
    """
    if dimension > table_size:
        raise InputError(
            f"a table of {table_size:,} numbers is too small for noise of {dimension:,}; make it larger"
        )
    starts = np.uint64(table_size - dimension + 1)
    hashed = hash64(seed, int(Stream.NOISE), generation, np.arange(perturbations))
    return (hashed % starts).astype(np.int64)


@dataclass(frozen=True)
class TableSlices:
    """Perturbations ``values[starts[k]:starts[k] + dimension]``: the draws of a noise table.

    ``starts`` fixes the order in which sums are added. Sums read the table in place and allocate only the
    result.
    """

    values: Vector
    """Values of the noise table."""
    starts: NDArray[np.int64]
    """Index of each perturbation's first number, shape (n,)."""
    dimension: int

    def write(self, number: int, scale: float | Center, out: Center) -> None:
        start = int(self.starts[number])
        np.multiply(self.values[start : start + self.dimension], scale, out=out, dtype=out.dtype)

    def gather(self, numbers: NDArray[np.int64]) -> Vector:
        """Return these perturbations in new memory, shape (k, dimension)."""
        return _windows(self.values, self.starts[numbers], self.dimension)

    def weighted_sum(self, weights: Weights, dtype: DTypeLike = np.float32) -> Center:
        dimension = self.dimension
        if dimension <= SMALL:
            return _gathered_sum(self.values, _terms(self.starts, weights), dimension).astype(dtype)
        import torch

        values, terms = _as_tensor(self.values), _along_the_table(self.starts, weights)
        total = np.zeros(dimension, dtype=dtype)

        def add(low: int, high: int) -> None:
            block = torch.from_numpy(total[low:high])
            ones = torch.ones(1, dtype=torch.float32, device="cpu").expand(high - low)
            for some in _batches(terms):
                windows = [values[start + low : start + high] for start, _ in some]
                # Added one after the other, but in one call: with a call for each, the threads would wait
                # for Python's global lock.
                into, same = [block] * len(some), [ones] * len(some)
                torch._foreach_addcmul_(into, windows, same, [weight for _, weight in some])

        _by_blocks(dimension, len(terms), add)
        return total

    def weighted_square_sum(
        self, weights: Weights, shift: Center | None = None, dtype: DTypeLike = np.float32
    ) -> Center:
        import torch

        values, terms = _as_tensor(self.values), _along_the_table(self.starts, weights)
        total = np.zeros(self.dimension, dtype=dtype)

        def add(low: int, high: int) -> None:
            block, moved = torch.from_numpy(total[low:high]), torch.from_numpy(np.empty_like(total[low:high]))
            for start, weight in terms:
                term = values[start + low : start + high]
                if shift is not None:
                    term = torch.sub(term, torch.from_numpy(shift[low:high]), out=moved)
                block.addcmul_(term, term, value=weight)

        _by_blocks(self.dimension, len(terms), add)
        return total


def _terms(starts: NDArray[np.int64], weights: Weights) -> list[tuple[int, float]]:
    return [(int(s), float(w)) for s, w in zip(starts, weights, strict=True) if w != 0.0]


def _along_the_table(starts: NDArray[np.int64], weights: Weights) -> list[tuple[int, float]]:
    """Return the terms sorted by offset: neighbors overlap, so most of the table is read from cache."""
    return sorted(_terms(starts, weights), key=itemgetter(0))


def _batches(terms: list[tuple[int, float]]) -> Iterator[list[tuple[int, float]]]:
    return (terms[low : low + _AT_ONCE] for low in range(0, len(terms), _AT_ONCE))


def _windows(noise: Vector, starts: NDArray[np.int64], dimension: int) -> Vector:
    """Copy the ``dimension`` numbers behind each start, shape (k, dimension)."""
    found: Vector = sliding_window_view(noise, dimension)[starts]
    return found


def _gathered_sum(noise: Vector, terms: list[tuple[int, float]], dimension: int) -> NDArray[np.float64]:
    """Return the sum in float64, which is rounded only once, by the caller.

    NumPy adds the rows. A BLAS product would make the sum depend on the number of threads.
    """
    total, rows = np.zeros(dimension), max(1, _GATHERED // dimension)
    for low in range(0, len(terms), rows):
        starts, weights = (np.array(part) for part in zip(*terms[low : low + rows], strict=True))
        gathered = _windows(noise, starts, dimension) * weights[:, None]
        total += np.add.reduce(gathered, axis=0)
    return total


def _as_tensor(noise: Vector) -> torch.Tensor:
    import torch

    with without_warnings():  # torch warns that the table is read-only, but nothing here writes to it
        return torch.from_numpy(noise)


def _by_blocks(dimension: int, terms: int, add: Callable[[int, int], None]) -> None:
    """Call ``add(low, high)`` for blocks that together cover all ``dimension`` parameters.

    Threads divide the parameters, not the terms. Every parameter's terms are added in the same order, so the
    sum does not depend on the number of cores.

    Args:
        dimension: Number of parameters.
        terms: Number of terms added to each parameter.
        add: Adds all terms to the parameters from ``low`` to ``high``. It may be called on other threads.
    """
    import torch

    threads, size = 1, _BLOCK
    # With more than one torch thread, torch divides the work itself.
    if terms * dimension >= THREADS_FROM and torch.get_num_threads() == 1:
        threads = min(cores(), -(-dimension // SMALLEST))
        size = min(_BLOCK, (-(-dimension // threads) // 64 + 1) * 64)
    blocks = [(low, min(low + size, dimension)) for low in range(0, dimension, size)]
    if threads == 1:
        for block in blocks:
            add(*block)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="escalade-sum") as pool:
        for done in [pool.submit(add, *block) for block in blocks]:
            done.result()
