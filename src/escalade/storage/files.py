"""Files that survive: written whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from escalade.errors import InputError, StorageFailure

# What a write fails of when the path is wrong, and not the disk.
_USERS = {
    errno.EACCES,
    errno.EEXIST,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
}


def write_bytes(path: Path, data: bytes) -> None:
    """Write a whole file: to a temporary one beside it, synced, then renamed over it.

    Raises:
        StorageFailure: the disk is full or the folder cannot be written.
    """
    with storage(path):
        with temporary_beside(path) as temporary:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        _sync_folder(path.parent)


_in_flight: set[Path] = set()


@contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """A name for a file that is to replace ``path``; whatever is left under it is removed."""
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    _in_flight.add(temporary)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        _in_flight.discard(temporary)


def remove_strays(folder: Path) -> None:
    """Remove what a killed process left half written in ``folder``."""
    for stray in folder.glob(".*.tmp*"):
        stray.unlink(missing_ok=True)


def discard_in_flight() -> None:
    """Remove what is half written: for a process that is about to end without unwinding."""
    for temporary in list(_in_flight):
        temporary.unlink(missing_ok=True)


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """Turn what the operating system says of a write into one line for the user."""
    try:
        yield
    except OSError as problem:
        if problem.errno in _USERS:
            raise InputError(
                f"{path} cannot be written ({problem.strerror}): choose another --run-dir"
            ) from None
        raise StorageFailure(
            f"{path} could not be written ({problem.strerror}): make room; earlier checkpoints are whole"
        ) from None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
