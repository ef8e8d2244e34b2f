"""Atomic file writes, safe reads, and errors of the file system as messages for the user."""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from escalade.errors import InputError, StorageFailure

AnyPath = str | os.PathLike[str]


def path_of(path: AnyPath, advice: str = "choose a different path") -> Path:
    """Return ``path`` as a Path; ``advice`` ends the error message.

    Raises:
        InputError: it is empty or too long, or in a folder without permission.
    """
    if not os.fspath(path):
        raise InputError("the path is empty: pass a file or a folder")
    try:  # otherwise Path.exists and others would raise this error later
        os.stat(path)
    except OSError as problem:
        if problem.errno in (errno.ENAMETOOLONG, errno.EACCES):
            raise InputError(f"{os.fspath(path)!r} cannot be opened ({problem.strerror}): {advice}") from None
    return Path(path)


# Write errors because of the path, not of the disk.
_WRONG_PATH = (PermissionError, FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError)
_WRONG_NUMBERS = {errno.ELOOP, errno.ENAMETOOLONG, errno.EROFS}


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically: to a temporary file, which is synced and renamed.

    Raises:
        InputError: the path cannot be written.
        StorageFailure: the disk is full or not available.
    """
    with storage(path):
        with temporary_beside(path) as temporary:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        _sync_folder(path.parent)


class Unreadable(InputError):
    """A file exists, but is not readable now: permission is missing, or the disk or server fails."""


def read_bytes(path: Path) -> bytes:
    """Read a regular file.

    Pipes and devices are not read, because they may block or never end.

    Raises:
        Unreadable: the file exists, but cannot be read.
        InputError: the file does not exist, or is not a regular file.
    """
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
        data = path.read_bytes() if regular else b""
    except FileNotFoundError:
        raise InputError(f"file {path} does not exist") from None
    except OSError as problem:
        raise Unreadable(f"{path} cannot be read: {problem.strerror}") from None
    if not regular:
        raise InputError(f"{path} is not a file")
    return data


def read_text(path: AnyPath, what: str) -> str:
    """Read UTF-8 text, with or without a byte-order mark; ``what`` names the file in errors.

    Raises:
        InputError: the file cannot be read, is not UTF-8, or ``path`` is invalid.
    """
    try:
        return path_of(path).read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise InputError(f"{what} {path} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise InputError(f"{what} {path} is not UTF-8 ({problem.reason}): save it as UTF-8") from None


_in_flight: set[Path] = set()
_TEMPORARY = re.compile(r"\..*\.escalade-([0-9]+)\.tmp(\.[^.]+)?")


@contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``. A file of that name is removed after the block."""
    temporary = path.with_name(f".{path.stem}.escalade-{os.getpid()}.tmp{path.suffix}")
    _in_flight.add(temporary)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        _in_flight.discard(temporary)


def is_temporary(path: Path) -> bool:
    """Return True if the name is one of :func:`temporary_beside`."""
    return _TEMPORARY.fullmatch(path.name) is not None


def remove_strays(folder: Path) -> None:
    """Remove temporary files of killed processes in ``folder``, but not those of running processes."""
    for stray in filter(is_temporary, folder.iterdir() if folder.is_dir() else ()):
        if stray.is_file() and not _writer_lives(stray):
            stray.unlink(missing_ok=True)


def _writer_lives(temporary: Path) -> bool:
    """Return True if the process in the name of a temporary file is running and may still write it."""
    named = _TEMPORARY.fullmatch(temporary.name)
    assert named is not None
    pid = int(named[1])
    try:
        with suppress(PermissionError):  # a process of a different user
            os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    return True


def discard_in_flight() -> None:
    """Remove temporary files, for a process that is about to exit without unwinding."""
    for temporary in list(_in_flight):
        temporary.unlink(missing_ok=True)


def check_output(output: Path, *endings: str) -> None:
    """Check extension and folder of an output file.

    Raises:
        InputError: the extension is not one of ``endings``, or the folder does not exist.
    """
    if output.suffix.lower() not in endings:
        raise InputError(f"`output` {output} must end in {' or '.join(endings)}")
    if not output.parent.is_dir():
        raise InputError(f"`output` {output}: folder {output.parent} does not exist")


@contextmanager
def storage(path: Path, advice: str = "choose a different path") -> Iterator[None]:
    """Convert write errors of the operating system to one line; ``advice`` is for a wrong path.

    Raises:
        InputError: the path cannot be written.
        StorageFailure: the disk is full or not available.
    """
    try:
        yield
    except OSError as problem:
        if isinstance(problem, _WRONG_PATH) or problem.errno in _WRONG_NUMBERS:
            raise InputError(f"{path} cannot be written ({problem.strerror}): {advice}") from None
        raise StorageFailure(
            f"{path} could not be written ({problem.strerror}): free disk space; the previous file is intact"
        ) from None


def temporary_folder() -> Path:
    """Return the folder for temporary files.

    Raises:
        InputError: no such folder is writable.
    """
    with storage(Path("a temporary file"), "set TMPDIR to a folder on a disk with space"):
        return Path(tempfile.gettempdir())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # not supported by some file systems
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
