"""Large arrays in memory that processes share, or that a file stands behind.

Small ones stay ordinary arrays: a mapping costs a few pages and calls.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LARGE = 2**22
"""Bytes from which an array is worth memory of its own."""


class SharedMemory(mmap.mmap):
    """Memory without a name in any file system, which lives as long as someone maps it or holds ``fd``."""

    fd: int

    @classmethod
    def of(cls, length: int) -> SharedMemory:
        """New memory of ``length`` bytes, all zero."""
        return cls.mapped(anonymous_file(length), length)

    @classmethod
    def mapped(cls, fd: int, length: int, access: int = mmap.ACCESS_DEFAULT) -> SharedMemory:
        """Map the memory behind ``fd``, which it takes over."""
        made = cls(fd, length, access=access)
        made.fd = fd
        return made

    def __del__(self) -> None:
        os.close(self.fd)


def shared_copy(values: NDArray[Any]) -> NDArray[Any]:
    """A copy of an array; a large one lies in memory that travels to other processes as a descriptor."""
    if values.nbytes < LARGE:
        return values.copy()
    copied = np.frombuffer(SharedMemory.of(values.nbytes), values.dtype).reshape(values.shape)
    copied[...] = values
    return copied


def memory_of(array: Any) -> SharedMemory | None:
    """The shared memory that an array is the whole of; None for other arrays."""
    owner = array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    whole = isinstance(owner, SharedMemory) and isinstance(array, np.ndarray) and array.nbytes == len(owner)
    return owner if whole else None


def filed(pieces: Iterable[NDArray[Any]], length: int, dtype: DTypeLike) -> NDArray[Any]:
    """An array of ``length`` numbers that is written piece by piece.

    A large one lies in a file without a name, and takes memory only where it is read or written to.
    """
    if length * np.dtype(dtype).itemsize < LARGE:
        return np.concatenate([np.asarray(piece, dtype).ravel() for piece in pieces])
    with tempfile.TemporaryFile() as file:
        for piece in pieces:
            file.write(np.ascontiguousarray(piece, dtype).data)
        file.flush()
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), dtype)


def stretches(sizes: Sequence[int], most: int) -> list[slice]:
    """Neighbouring parts of a vector, by their sizes, joined to stretches of up to ``most`` numbers.

    A part that is larger is a stretch by itself.
    """
    found: list[slice] = []
    start = 0
    for size in sizes:
        if found and start + size - found[-1].start <= most:
            found[-1] = slice(found[-1].start, start + size)
        else:
            found.append(slice(start, start + size))
        start += size
    return found


def anonymous_file(length: int) -> int:
    """The descriptor of a new file of ``length`` bytes in memory."""
    if sys.platform == "linux":
        fd = os.memfd_create("escalade", os.MFD_CLOEXEC)
    else:  # no memfd outside Linux: a file without a name serves as well
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, length)
    return fd
