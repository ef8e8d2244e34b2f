"""Memory that processes share, by a descriptor and without a name.

Imports no numpy: a worker process imports this before it has said how many threads BLAS may use.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
import tempfile

from escalade.errors import InputError

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


def anonymous_file(length: int) -> int:
    """The descriptor of a new file of ``length`` bytes in memory.

    Raises:
        InputError: the process may not have files of this size.
    """
    if sys.platform == "linux":
        fd = os.memfd_create("escalade", os.MFD_CLOEXEC)
    else:  # no memfd outside Linux: a file without a name serves as well
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    try:
        os.ftruncate(fd, length)
    except OSError as problem:
        os.close(fd)
        if problem.errno != errno.EFBIG:
            raise
        size = f"{length / 2**20:,.0f} MiB"
        raise InputError(
            f"{size} of shared memory are more than a file may have here: raise the limit (ulimit -f)"
        ) from None
    return fd
