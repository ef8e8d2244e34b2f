"""One noise table per host, for processes that know nothing of each other.

A process that holds a table binds a socket whose name says where: process id and file descriptor.
Others read the names in ``/proc/net/unix`` and map the memory through ``/proc/PID/fd``. Names of
this kind (Linux's abstract sockets) end with their process, so nothing is left behind.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOCK_SECONDS = 0.01
_PATIENCE = 60.0

_names: list[socket.socket] = []


def find(label: str) -> int | None:
    """A descriptor of the memory called ``label`` that a process of this user and host holds, if any."""
    for holder in _holders(label):
        with suppress(OSError):
            if os.readlink(holder).startswith(f"/memfd:{label} "):
                return os.open(holder, os.O_RDONLY | os.O_CLOEXEC)
    return None


def announce(label: str, fd: int) -> None:
    """Let :func:`find` find ``fd``, which this process keeps open."""
    _names.append(_bind(f"{label}@{os.getpid()}@{fd}"))


@contextmanager
def alone(label: str) -> Iterator[None]:
    """Hold the host's lock called ``label``; it ends with the process that holds it.

    After a minute it is given up: a table of one's own costs memory, and waiting for ever costs a run.
    """
    until, lock = time.monotonic() + _PATIENCE, None
    while lock is None and time.monotonic() < until:
        try:
            lock = _bind(f"{label}@lock")
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                raise
            time.sleep(_LOCK_SECONDS)
    try:
        yield
    finally:
        if lock is not None:
            lock.close()


def supported() -> bool:
    """Whether this system has what is needed: Linux has."""
    return hasattr(os, "memfd_create") and Path("/proc/net/unix").exists()


def _holders(label: str) -> Iterator[str]:
    start = f"@{label}@"  # /proc writes the zero byte of an abstract name as @
    for line in Path("/proc/net/unix").read_text(errors="replace").splitlines():
        _, found, address = line.partition(start)
        pid, _, fd = address.partition("@")
        if found and pid.isdecimal() and fd.isdecimal():
            yield f"/proc/{pid}/fd/{fd}"


def _bind(name: str) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    try:
        bound.bind("\0" + name)
    except OSError:
        bound.close()
        raise
    return bound
