"""Locks of run folders, which the kernel releases when the holder exits, even if it is killed.

The file ``.lock`` contains the name of the holder. It is emptied, but not removed, when the lock is released.

A lock has no effect on other machines. The driver of a run on a different machine repeatedly writes a small
file, the lease, to the local copy of the run. Its modification time is compared with the local clock, so the
clocks of the machines have to agree to less than :data:`FRESH`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Literal

from escalade.errors import InputError
from escalade.storage.files import Unreadable, storage

LOCK = ".lock"
LEASE = ".lease"
FRESH = 60.0
"""Seconds after the last write of its lease for which a driver counts as alive."""
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW  # never empties the target of a link

# Errors of flock on file systems without locks.
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


Held = Literal["held", "free", "killed", "unknown"]
"""State of a lock. ``killed``: its holder exited without a release. ``unknown``: locks are not supported."""


def lease_holder(folder: Path) -> tuple[str, bool]:
    """Return the remote driver of the run in ``folder`` ("" if there is none), and True if it is alive.

    Raises:
        Unreadable: the lease exists, but cannot be read.
    """
    lease = folder / LEASE
    try:
        who = lease.read_text(encoding="utf-8", errors="replace")[:200].strip()
        age = time.time() - lease.stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return "", False
    except OSError as problem:
        raise Unreadable(f"{lease} cannot be read: {problem.strerror}") from None
    return who or "a driver on another machine", abs(age) < FRESH


class FolderLock:
    """A lock on a folder, held by one object at a time among all processes and threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / LOCK
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Acquire the lock.

        Has no effect if this object holds it already, or without support for locks.

        Raises:
            InputError: a different run, in this or another process, holds it; the run has a remote driver;
                or the folder cannot be written, or the lease cannot be read.
        """
        if self._descriptor is not None:
            return
        who, alive = lease_holder(self._folder)
        if alive:
            raise InputError(
                f"{self._folder} is the copy of a run with a remote driver, {who}: follow it with 'escalade "
                f"attach', or wait {FRESH:.0f} seconds if its cluster is gone"
            )
        with storage(self._file):
            descriptor = os.open(self._file, _FLAGS, 0o666)
            try:
                self._take(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
        self._descriptor = descriptor
        _held.add(self)
        with suppress(OSError):  # the lease of a dead driver; this process is the driver now
            (self._folder / LEASE).unlink()

    def release(self) -> None:
        """Release the lock. Has no effect if it is not held."""
        if self._descriptor is not None:
            with suppress(OSError):  # the disk may be gone; then the run looks killed
                os.ftruncate(self._descriptor, 0)
            self._close()

    def status(self) -> tuple[Held, str]:
        """Return the state of the lock, and its present or killed holder.

        Writes nothing. If the lock is free, an attempt to acquire it during this call fails.
        """
        try:
            who, alive = lease_holder(self._folder)
            if who:
                return ("held" if alive else "killed"), who
            descriptor = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return "free", ""
        except (OSError, Unreadable):
            return "unknown", ""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return "held", _holder(descriptor) or "another process"
        except OSError:
            return "unknown", ""
        else:
            holder = _holder(descriptor)
            return ("killed" if holder else "free"), holder
        finally:
            os.close(descriptor)

    def __del__(self) -> None:
        self.release()

    def _close(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def _take(self, descriptor: int) -> None:
        try:
            # Not fcntl.lockf: its locks belong to the process, so two threads would share one.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor) or "another process"
            raise InputError(
                f"{self._folder} is in use by {holder}: wait until it exits, or use a different folder"
            ) from None
        except OSError as problem:
            if problem.errno not in _NO_LOCKS:
                raise
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 200, 0).decode(errors="replace").strip()


_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


def _close_inherited_locks() -> None:
    """Close locks in a forked child, such as a helper of an environment, which may outlive the run."""
    for lock in list(_held):
        lock._close()


os.register_at_fork(after_in_child=_close_inherited_locks)
