"""Shared memory with a descriptor and without a name.

The module does not import numpy, as a worker imports it before it has set the number of BLAS threads.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
import tempfile

from escalade.errors import InputError

LARGE = 2**22
"""Size in bytes from which arrays get their own shared memory."""


class SharedMemory(mmap.mmap):
    """Memory without a name in any file system, which exists while it is mapped or ``fd`` is open."""

    fd: int

    @classmethod
    def of(cls, length: int) -> SharedMemory:
        """Allocate ``length`` bytes, all zero."""
        return cls.mapped(anonymous_file(length), length)

    @classmethod
    def mapped(cls, fd: int, length: int, access: int = mmap.ACCESS_DEFAULT) -> SharedMemory:
        """Map the memory behind ``fd``, and take over the descriptor."""
        made = cls(fd, length, access=access)
        made.fd = fd
        return made

    def __del__(self) -> None:
        os.close(self.fd)


def anonymous_file(length: int) -> int:
    """Create a file of ``length`` bytes in memory and return its descriptor.

    Raises:
        InputError: files of this size exceed the process's limit.
    """
    if sys.platform == "linux":
        fd = os.memfd_create("escalade", os.MFD_CLOEXEC)
    else:  # other systems have no memfd, so use a temporary file without a name
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
            f"{size} of shared memory exceed the file size limit; raise it (ulimit -f)"
        ) from None
    return fd
