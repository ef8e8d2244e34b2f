"""Tensors and plain state in one file: verified when read, and never code.

A file is safetensors, with the rest of the state as JSON in its metadata and a SHA-256 over both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as from_safetensors
from safetensors.numpy import save as to_safetensors

from escalade.errors import InputError
from escalade.storage.files import read_bytes, write_bytes

T = TypeVar("T")

Tensors = dict[str, NDArray[Any]]

State = dict[str, Any]


class Stored(NamedTuple):
    """The contents of a file."""

    tensors: Tensors
    """Arrays by name."""
    state: State
    """The rest, as JSON has it: nested dicts, lists, text, numbers, booleans and None."""


class Damaged(InputError):
    """A file is there, and cannot be used: it is not what was written, or not of this kind."""


def write(path: Path, tensors: Mapping[str, NDArray[Any]], state: State) -> None:
    """Write tensors and state to ``path`` so that a crash leaves the old file or the new one.

    Raises:
        InputError: there can be no such file.
        StorageFailure: the disk is full, or went away.
    """
    arrays = {name: np.asarray(value, order="C") for name, value in tensors.items()}  # 0-d stays 0-d
    text = json.dumps(state, sort_keys=True)
    data = to_safetensors(arrays, metadata={"state": text, "sha256": digest(arrays, text)})
    write_bytes(path, _in_order(data))


def read(path: Path) -> Stored:
    """Read back what :func:`write` wrote.

    Raises:
        InputError: there is no such file, or it cannot be read.
        Damaged: it is truncated, altered, or not a file of Escalade's.
    """
    data = read_bytes(path)
    try:
        arrays, metadata = _parse(data)
        text, expected = metadata["state"], metadata["sha256"]
        whole = digest(arrays, text) == expected
        state = json.loads(text)
    except (SafetensorError, KeyError, ValueError, TypeError, AttributeError, RecursionError):
        whole, arrays, state = False, {}, None
    if not whole or not isinstance(state, dict):
        raise Damaged(f"{path} is damaged, or not a file of Escalade's: its checksum does not match")
    return Stored(arrays, state)


def record(kind: type[T], values: Any) -> T:
    """Return the dataclass ``kind`` of which ``dataclasses.asdict`` made ``values``.

    The checksum of their file vouches for the values of the fields; only the names are compared.

    Raises:
        Damaged: the file is of a different kind.
    """
    hints = get_type_hints(kind)
    try:
        return kind(**{name: _field(hints[name], value) for name, value in values.items()})
    except (AttributeError, KeyError, TypeError):
        raise Damaged("it is a file of a different kind") from None


def _field(hint: Any, value: Any) -> Any:
    inner = next((part for part in (hint, *get_args(hint)) if is_dataclass(part)), None)
    return value if inner is None or value is None else record(inner, value)  # type: ignore[arg-type]


def with_prefix(prefix: str, state: Mapping[str, T]) -> dict[str, T]:
    """The part of a state whose names begin with ``prefix``, by the rest of the names."""
    return {name.removeprefix(prefix): part for name, part in state.items() if name.startswith(prefix)}


def digest(arrays: Mapping[str, NDArray[Any]], text: str) -> str:
    """SHA-256 over names, types, shapes and bytes of the arrays, and the text."""
    total = hashlib.sha256(text.encode())
    for name, value in sorted(arrays.items()):
        total.update(f"\0{name}\0{value.dtype.str}\0{value.shape}\0".encode())
        total.update(np.ascontiguousarray(value).tobytes())
    return total.hexdigest()


def _in_order(data: bytes) -> bytes:
    """The same file with its metadata sorted: safetensors writes them in another order each time."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # as safetensors aligns what follows
    return len(text).to_bytes(8, "little") + text + data[end:]


def _parse(data: bytes) -> tuple[Tensors, dict[str, str]]:
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    return from_safetensors(data), header["__metadata__"]
