"""Files that survive: written whole or not at all."""

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


def path_of(path: AnyPath, mend: str = "name another place") -> Path:
    """``path`` as a Path; ``mend`` is for one that cannot be.

    Raises:
        InputError: it is empty or too long, or in a closed folder.
    """
    if not os.fspath(path):
        raise InputError("an empty path: name a file or a folder")
    try:  # which Path.exists and the like would raise
        os.stat(path)
    except OSError as problem:
        if problem.errno in (errno.ENAMETOOLONG, errno.EACCES):
            raise InputError(f"{os.fspath(path)!r} cannot be opened ({problem.strerror}): {mend}") from None
    return Path(path)


# Errors of a write that come from the path, not from the disk.
_WRONG_PATH = (PermissionError, FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError)
_WRONG_NUMBERS = {errno.ELOOP, errno.ENAMETOOLONG, errno.EROFS}


def write_bytes(path: Path, data: bytes) -> None:
    """Write a whole file: to a temporary one beside it, synced, then renamed over it.

    Raises:
        InputError: the path is wrong.
        StorageFailure: the disk is full or went away.
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
    """A file cannot be read now: it is another user's, or its disk or server does not answer."""


def read_bytes(path: Path) -> bytes:
    """Read a regular file: not a pipe, which would be waited for, nor a device, which may never end.

    Raises:
        Unreadable: it is there, and cannot be read.
        InputError: it is not there, or is of another kind.
    """
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
        data = path.read_bytes() if regular else b""
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except OSError as problem:
        raise Unreadable(f"{path} cannot be read: {problem.strerror}") from None
    if not regular:
        raise InputError(f"{path} is not a file")
    return data


def read_text(path: AnyPath, what: str) -> str:
    """Read text, without the byte-order mark that some editors write; ``what`` names the file in errors.

    Raises:
        InputError: it cannot be read, is not UTF-8, or ``path`` is none.
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
    """A name for a file that is to replace ``path``; a file of that name is removed in the end."""
    temporary = path.with_name(f".{path.stem}.escalade-{os.getpid()}.tmp{path.suffix}")
    _in_flight.add(temporary)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        _in_flight.discard(temporary)


def is_temporary(path: Path) -> bool:
    """Return whether the name is one that :func:`temporary_beside` gives."""
    return _TEMPORARY.fullmatch(path.name) is not None


def remove_strays(folder: Path) -> None:
    """Remove what a killed process left half written in ``folder``; not what one that lives here writes."""
    for stray in filter(is_temporary, folder.iterdir() if folder.is_dir() else ()):
        if stray.is_file() and not _writer_lives(stray):
            stray.unlink(missing_ok=True)


def _writer_lives(temporary: Path) -> bool:
    """Return whether the process in the name of a temporary file is there, and may still write it."""
    named = _TEMPORARY.fullmatch(temporary.name)
    assert named is not None
    pid = int(named[1])
    try:
        with suppress(PermissionError):  # another user's
            os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    return True


def discard_in_flight() -> None:
    """Remove what is half written: for a process that is about to end without unwinding."""
    for temporary in list(_in_flight):
        temporary.unlink(missing_ok=True)


def check_output(output: Path, *endings: str) -> None:
    """Refuse a file for what a command makes, by its ending or for want of a folder.

    Raises:
        InputError: names the file, and the endings that it may have.
    """
    if output.suffix.lower() not in endings:
        raise InputError(f"`output` {output} must end in {' or '.join(endings)}")
    if not output.parent.is_dir():
        raise InputError(f"`output` {output}: there is no folder {output.parent}")


@contextmanager
def storage(path: Path, mend: str = "choose another place") -> Iterator[None]:
    """Turn the operating system's error of a write into one line for the user; ``mend`` is for a wrong path.

    Raises:
        InputError: the path is wrong: the user can choose another one.
        StorageFailure: the disk is full or went away.
    """
    try:
        yield
    except OSError as problem:
        if isinstance(problem, _WRONG_PATH) or problem.errno in _WRONG_NUMBERS:
            raise InputError(f"{path} cannot be written ({problem.strerror}): {mend}") from None
        raise StorageFailure(
            f"{path} could not be written ({problem.strerror}): make room; what was there before is whole"
        ) from None


def temporary_folder() -> Path:
    """The folder that this system keeps temporary files in.

    Raises:
        InputError: there is none that can be written.
    """
    with storage(Path("a temporary file"), "set TMPDIR to a folder with room"):
        return Path(tempfile.gettempdir())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # of file systems that cannot
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
