"""One run a folder at a time: a lock that the kernel releases when its holder ends, however it ends."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from pathlib import Path

from escalade.errors import InputError
from escalade.storage.files import storage

_NAME = ".lock"

# What flock answers on file systems that have no locks.
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


class FolderLock:
    """A lock on a folder, held by one object at a time among all processes and threads.

    The file ``.lock`` in the folder stays when the lock is released: it says who held it last.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock; nothing happens where this object holds it already.

        On a file system without locks, nothing is locked.

        Raises:
            InputError: another run holds it, in this process or another; or the folder cannot be written.
        """
        if self._descriptor is not None:
            return
        path = self._folder / _NAME
        with storage(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._take(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; nothing happens where it is not held."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def __del__(self) -> None:
        self.release()

    def _take(self, descriptor: int) -> None:
        try:
            # Not fcntl.lockf: its locks belong to the process, so that two threads would share one.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "another process"
            raise InputError(
                f"{self._folder} is in use by {holder}: wait until it has ended, or take another folder"
            ) from None
        except OSError as problem:
            if problem.errno not in _NO_LOCKS:
                raise
        with storage(self._folder / _NAME):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
