"""Files that survive: written whole or not at all, verified when read, and never code.

A file is safetensors, with the rest of the state as JSON in its metadata and a SHA-256 over both.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save as to_safetensors

from escalade.errors import InputError, StorageFailure

Tensors = dict[str, NDArray[Any]]
State = dict[str, Any]

_NAME = re.compile(r"^generation-(\d+)\.safetensors$")
_KEPT = 2
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


class Damaged(InputError):
    """A file exists and is not what was written."""


def write(path: Path, tensors: Mapping[str, NDArray[Any]], state: State) -> None:
    """Write tensors and state to ``path`` so that a crash leaves the old file or the new one.

    Raises:
        StorageFailure: the disk is full or the folder cannot be written.
    """
    arrays = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    text = json.dumps(state, sort_keys=True)
    data = to_safetensors(arrays, metadata={"state": text, "sha256": digest(arrays, text)})
    write_bytes(path, data)


def read(path: Path) -> tuple[Tensors, State]:
    """Read back what :func:`write` wrote.

    Raises:
        InputError: there is no such file.
        Damaged: it is truncated, altered, or not a file of ours.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}") from None
    try:
        arrays, metadata = _parse(data)
        text, expected = metadata["state"], metadata["sha256"]
        whole = digest(arrays, text) == expected
        state = json.loads(text)
    except (SafetensorError, KeyError, ValueError, TypeError):
        whole, arrays, state = False, {}, {}
    if not whole:
        raise Damaged(f"{path} is damaged, or not a file of Escalade's: its checksum does not match")
    return arrays, state


def under(prefix: str, tensors: Mapping[str, NDArray[Any]]) -> Tensors:
    """Those tensors whose names begin with ``prefix``, by the rest of their names."""
    return {name.removeprefix(prefix): part for name, part in tensors.items() if name.startswith(prefix)}


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


def digest(arrays: Mapping[str, NDArray[Any]], text: str) -> str:
    """SHA-256 over names, types, shapes and bytes of the arrays, and the text."""
    total = hashlib.sha256(text.encode())
    for name, value in sorted(arrays.items()):
        total.update(f"\0{name}\0{value.dtype.str}\0{value.shape}\0".encode())
        total.update(np.ascontiguousarray(value).tobytes())
    return total.hexdigest()


class Checkpoints:
    """The checkpoints of a run: the last two, and those that are kept for good."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, generation: int, tensors: Tensors, state: State, snapshot_every: int = 0) -> None:
        """Write the checkpoint after ``generation`` generations; drop those no longer needed."""
        with storage(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        write(self.path(generation), tensors, state)
        for older in self.generations()[:-_KEPT]:
            if not (snapshot_every and older % snapshot_every == 0):
                self.path(older).unlink(missing_ok=True)

    def load_latest(self) -> tuple[Tensors, State, list[str]]:
        """The newest checkpoint that is whole, and what was wrong with newer ones.

        Raises:
            InputError: none is left.
        """
        problems: list[str] = []
        for generation in reversed(self.generations()):
            try:
                return *read(self.path(generation)), problems
            except InputError as problem:
                problems.append(str(problem))
        detail = f" ({problems[0]})" if problems else ""
        raise InputError(f"{self.folder} holds no checkpoint to go on from{detail}")

    def drop_after(self, generation: int) -> None:
        """Forget checkpoints later than ``generation``."""
        for later in self.generations():
            if later > generation:
                self.path(later).unlink(missing_ok=True)

    def generations(self) -> list[int]:
        """Generations there are checkpoints of, ascending."""
        names = (_NAME.match(file.name) for file in self.folder.glob("*.safetensors"))
        return sorted(int(name[1]) for name in names if name)

    def path(self, generation: int) -> Path:
        """Where a generation's checkpoint is."""
        return self.folder / f"generation-{generation:06d}.safetensors"


def _parse(data: bytes) -> tuple[Tensors, dict[str, str]]:
    from safetensors.numpy import load as from_safetensors

    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    return from_safetensors(data), header["__metadata__"]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
