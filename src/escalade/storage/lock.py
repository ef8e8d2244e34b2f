"""One run a folder at a time: a lock that the kernel releases when its holder ends, however it ends.

The file ``.lock`` says who holds it; whoever gives the lock back empties the file, which stays.

A lock does not reach from one machine to another. A driver elsewhere writes a small file, the lease, into the
run's copy again and again: the time of its last writing is compared with this machine's clock, so clocks of
machines must agree to less than :data:`FRESH`.
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
"""Seconds after its last beat for which a driver counts as alive."""
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW  # what a link leads to is not ours to empty

# What flock answers on file systems that have no locks.
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


Held = Literal["held", "free", "killed", "unknown"]
"""State of a lock: ``killed`` where its holder ended without giving it back, ``unknown`` without locks."""


def lease_holder(folder: Path) -> tuple[str, bool]:
    """The driver that leads the run of ``folder`` from elsewhere (empty: none), and whether it is alive.

    Raises:
        Unreadable: it cannot be told, as the disk or its server does not answer.
    """
    lease = folder / LEASE
    try:
        who = lease.read_text(encoding="utf-8", errors="replace")[:200].strip()
        age = time.time() - lease.stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return "", False
    except OSError as problem:
        raise Unreadable(f"{lease} cannot be read: {problem.strerror}") from None
    return who or "a driver elsewhere", abs(age) < FRESH


class FolderLock:
    """A lock on a folder, held by one object at a time among all processes and threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / LOCK
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock; nothing happens where this object holds it already.

        On a file system without locks, nothing is locked.

        Raises:
            InputError: another run holds it, in this process or another, or leads it from elsewhere; or the
                folder cannot be written, or its lease not be read.
        """
        if self._descriptor is not None:
            return
        who, alive = lease_holder(self._folder)
        if alive:
            raise InputError(
                f"{self._folder} is a copy of a run that is led elsewhere, by {who}: 'escalade attach' "
                f"follows it; where its cluster is gone, wait for {FRESH:.0f} seconds"
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
        with suppress(OSError):  # of a driver that is gone: the run is led here now
            (self._folder / LEASE).unlink()

    def release(self) -> None:
        """Give the lock back; nothing happens where it is not held."""
        if self._descriptor is not None:
            with suppress(OSError):  # the disk may be gone: whoever looks takes the run for killed
                os.ftruncate(self._descriptor, 0)
            self._close()

    def look(self) -> tuple[Held, str]:
        """Return whether the lock is held, and by whom; of one that is so no longer, who it was.

        Nothing is written. Where nobody holds the lock, whoever would take it in this instant is refused.
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
            # Not fcntl.lockf: its locks belong to the process, so that two threads would share one.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor) or "another process"
            raise InputError(
                f"{self._folder} is in use by {holder}: wait until it has ended, or take another folder"
            ) from None
        except OSError as problem:
            if problem.errno not in _NO_LOCKS:
                raise
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 200, 0).decode(errors="replace").strip()


_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    """A forked child, such as an environment's helper, may outlive the run: it holds no lock of it."""
    for lock in list(_held):
        lock._close()


os.register_at_fork(after_in_child=_leave_to_the_parent)
