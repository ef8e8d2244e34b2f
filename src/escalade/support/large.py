"""Large arrays in memory that processes share, or that a file stands behind.

Small ones stay ordinary arrays: a mapping costs a few pages and calls.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from escalade.errors import StorageFailure
from escalade.support.shared_memory import LARGE, SharedMemory


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

    Raises:
        StorageFailure: the file cannot be written.
    """
    if length * np.dtype(dtype).itemsize < LARGE:
        return np.concatenate([np.asarray(piece, dtype).ravel() for piece in pieces])
    try:
        with tempfile.TemporaryFile() as file:
            for piece in pieces:
                file.write(np.ascontiguousarray(piece, dtype).data)
            file.flush()
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), dtype)
    except OSError as problem:
        place = tempfile.tempdir or "a temporary file"  # gettempdir raises where no folder is fit for one
        raise StorageFailure(
            f"a copy of the parameters cannot be kept in {place} ({problem}): make room, or set TMPDIR"
        ) from None
