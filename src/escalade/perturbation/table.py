"""The noise table: one block of Gaussian numbers per host, shared by every process on it.

Salimans et al. 2017 (arXiv 1703.03864), section 2.1: to draw a perturbation is to choose an offset, and a
worker can rebuild any member from a single number.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from multiprocessing import reduction
from multiprocessing.context import get_spawning_popen
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from escalade.perturbation.address import Stream, hash64
from escalade.perturbation.slices import TableSlices, offsets
from escalade.support.shared_memory import SharedMemory

SMALLEST = 2**22
LARGEST = 2**25
_SLICES = 32


def table_size(dimension: int) -> int:
    """Return the number of floats in the table for a policy of ``dimension`` parameters.

    The table holds 32 disjoint perturbations, and millions of overlapping ones, if 2**25 floats suffice, but
    never fewer than two. For small policies it has 16 MiB, so that it stays in cache.
    """
    return max(SMALLEST, min(_SLICES * dimension, LARGEST), 2 * dimension)


class NoiseTable:
    """Source of noise: ``size`` standard normal float32 numbers, a function of ``seed`` alone.

    A perturbation is a slice of the table. The slice's offset is a hash of the perturbation's address.

    Other processes on this machine map the table's memory with :meth:`attach`.

    A table is pickled as its file descriptor for a child process that is being started, and as its numbers
    for anything else. A cluster's engine stores that array once per machine. A population is pickled with
    the table's :attr:`address` only, because the receiving process has the table already.
    """

    def __init__(self, seed: int, size: int) -> None:
        self.seed, self.size = seed, size
        self._memory: SharedMemory | None = SharedMemory.of(4 * size)
        values = np.frombuffer(self._memory, dtype=np.float32)
        key = hash64(seed, int(Stream.NOISE), [0, 1])
        np.random.Generator(np.random.Philox(key=key)).standard_normal(dtype=np.float32, out=values)
        values.flags.writeable = False
        self.values: NDArray[np.float32] = values
        _here.setdefault((seed, size), self)

    @property
    def address(self) -> _Address:
        """Seed and size, which unpickle to the process's own table, or to a new one."""
        return _Address(self.seed, self.size)

    @property
    def fd(self) -> int:
        """File descriptor of the shared memory that holds the numbers."""
        if self._memory is None:
            self._memory = SharedMemory.of(4 * self.size)
            np.frombuffer(self._memory, dtype=np.float32)[:] = self.values
        return self._memory.fd

    def draw(self, seed: int, generation: int, count: int, dimension: int) -> TableSlices:
        """Return the ``count`` perturbations of a generation of the search with ``seed``."""
        return TableSlices(self.values, offsets(seed, generation, count, self.size, dimension), dimension)

    @classmethod
    def attach(cls, fd: int, size: int, seed: int) -> NoiseTable:
        """Map a table created by a different process of this host; takes ownership of ``fd``."""
        memory = SharedMemory.mapped(fd, 4 * size, mmap.ACCESS_READ)
        return cls._of(np.frombuffer(memory, dtype=np.float32), seed, memory)

    @classmethod
    def _of(cls, values: NDArray[np.float32], seed: int, memory: SharedMemory | None = None) -> NoiseTable:
        table = cls.__new__(cls)
        table.seed, table.size, table.values, table._memory = seed, len(values), values, memory
        _here.setdefault((seed, len(values)), table)
        return table

    def __reduce__(self) -> Any:
        # Module-level functions, because cloudpickle would send methods by value.
        if get_spawning_popen() is None:
            return _of, (self.values, self.seed)
        # The child inherits the descriptor, so the numbers are not copied.
        return _attach, (reduction.DupFd(self.fd), self.size, self.seed)


_here: WeakValueDictionary[tuple[int, int], NoiseTable] = WeakValueDictionary()
"""This process's tables by seed and size."""


@dataclass(frozen=True)
class _Address:
    seed: int
    size: int

    def __reduce__(self) -> Any:
        return _found, (self.seed, self.size)


def _found(seed: int, size: int) -> NoiseTable:
    known = _here.get((seed, size))
    return NoiseTable(seed, size) if known is None else known


def _of(values: NDArray[np.float32], seed: int) -> NoiseTable:
    return NoiseTable._of(values, seed)


def _attach(fd: Any, size: int, seed: int) -> NoiseTable:
    return NoiseTable.attach(fd.detach(), size, seed)
