"""The noise table: one block of Gaussian numbers per host, shared by every process on it.

Salimans et al. 2017 (arXiv 1703.03864), section 2.1: drawing a perturbation becomes choosing an
offset, and a worker can rebuild any member from a single number.
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
    """Floats in the table for a policy of ``dimension`` parameters.

    Thirty-two disjoint perturbations (with millions of overlapping ones between them) where
    memory allows, never fewer than two; 16 MiB for small policies, so that it stays in cache.
    """
    return max(SMALLEST, min(_SLICES * dimension, LARGEST), 2 * dimension)


class NoiseTable:
    """A source of noise: ``size`` standard normal float32 numbers, a function of ``seed`` alone.

    A perturbation is a slice of it, whose place is a hash of its address.

    Other processes of this machine map its memory through :meth:`attach`.

    Pickled for a process that is being started here, it travels as its descriptor. Pickled for anywhere else,
    as its numbers, an array that an engine of a cluster keeps once a machine. In a population it travels as
    its :attr:`address`: where that arrives, the table is there already.
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
        """Seed and size: unpickled, the table that the process has, or else a new one."""
        return _Address(self.seed, self.size)

    @property
    def fd(self) -> int:
        """Descriptor of memory with the numbers, for processes of this machine."""
        if self._memory is None:
            self._memory = SharedMemory.of(4 * self.size)
            np.frombuffer(self._memory, dtype=np.float32)[:] = self.values
        return self._memory.fd

    def draw(self, seed: int, generation: int, count: int, dimension: int) -> TableSlices:
        """The ``count`` perturbations of a generation of the search with ``seed``."""
        return TableSlices(self.values, offsets(seed, generation, count, self.size, dimension), dimension)

    @classmethod
    def attach(cls, fd: int, size: int, seed: int) -> NoiseTable:
        """Map the table that another process of this host made; takes ``fd`` over."""
        memory = SharedMemory.mapped(fd, 4 * size, mmap.ACCESS_READ)
        return cls._of(np.frombuffer(memory, dtype=np.float32), seed, memory)

    @classmethod
    def _of(cls, values: NDArray[np.float32], seed: int, memory: SharedMemory | None = None) -> NoiseTable:
        table = cls.__new__(cls)
        table.seed, table.size, table.values, table._memory = seed, len(values), values, memory
        _here.setdefault((seed, len(values)), table)
        return table

    def __reduce__(self) -> Any:
        # By functions, and not by methods, which cloudpickle would send by value.
        if get_spawning_popen() is None:
            return _of, (self.values, self.seed)
        # The child inherits the descriptor; the numbers stay where they are.
        return _attach, (reduction.DupFd(self.fd), self.size, self.seed)


_here: WeakValueDictionary[tuple[int, int], NoiseTable] = WeakValueDictionary()
"""Tables of this process by seed and size."""


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
