"""Large arrays in shared memory or backed by a file.

Small arrays stay ordinary ones, as a mapping costs a few pages and calls.
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
    """Copy an array; a large copy lies in shared memory, which other processes receive as a descriptor."""
    if values.nbytes < LARGE:
        return values.copy()
    copied = np.frombuffer(SharedMemory.of(values.nbytes), values.dtype).reshape(values.shape)
    copied[...] = values
    return copied


def memory_of(array: Any) -> SharedMemory | None:
    """Return the shared memory that an array covers completely, or None."""
    owner = array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    whole = isinstance(owner, SharedMemory) and isinstance(array, np.ndarray) and array.nbytes == len(owner)
    return owner if whole else None


def filed(pieces: Iterable[NDArray[Any]], length: int, dtype: DTypeLike) -> NDArray[Any]:
    """Build an array of ``length`` numbers from pieces.

    A large array lies in a file without a name, and uses memory only for pages that are accessed.

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
        place = tempfile.tempdir or "a temporary file"  # gettempdir raises if no folder is writable
        raise StorageFailure(
            f"a copy of the parameters cannot be written to {place} ({problem}); free space or set TMPDIR"
        ) from None
