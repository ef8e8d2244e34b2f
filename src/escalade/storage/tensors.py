"""Files with tensors and plain state, which are verified on reading and never run code.

The format is safetensors. The plain state is JSON in the metadata, with a SHA-256 over both.
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
    """Content of a file."""

    tensors: Tensors
    """Arrays by name."""
    state: State
    """Plain state of JSON types: nested dicts, lists, text, numbers, booleans and None."""


class Damaged(InputError):
    """A file exists, but is damaged or of a different kind."""


def write(path: Path, tensors: Mapping[str, NDArray[Any]], state: State) -> None:
    """Write tensors and state to ``path`` atomically: a crash leaves the old file or the new one.

    Raises:
        InputError: the path cannot be written.
        StorageFailure: the disk is full or not available.
    """
    arrays = {name: np.asarray(value, order="C") for name, value in tensors.items()}  # 0-d stays 0-d
    text = json.dumps(state, sort_keys=True)
    data = to_safetensors(arrays, metadata={"state": text, "sha256": digest(arrays, text)})
    write_bytes(path, _in_order(data))


def read(path: Path) -> Stored:
    """Read a file of :func:`write`.

    Raises:
        InputError: the file does not exist or cannot be read.
        Damaged: it is truncated, altered, or not a file of Escalade.
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
        raise Damaged(f"{path} is damaged, or not a file of Escalade: its checksum does not match")
    return Stored(arrays, state)


def record(kind: type[T], values: Any) -> T:
    """Return the dataclass ``kind`` from the output of ``dataclasses.asdict``.

    Only the names of fields are checked; the values are protected by the checksum of the file.

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
    """Return the part of a state whose names start with ``prefix``, with the prefix removed."""
    return {name.removeprefix(prefix): part for name, part in state.items() if name.startswith(prefix)}


def digest(arrays: Mapping[str, NDArray[Any]], text: str) -> str:
    """Return the SHA-256 of names, types, shapes and bytes of the arrays, and of the text."""
    total = hashlib.sha256(text.encode())
    for name, value in sorted(arrays.items()):
        total.update(f"\0{name}\0{value.dtype.str}\0{value.shape}\0".encode())
        total.update(np.ascontiguousarray(value).tobytes())
    return total.hexdigest()


def _in_order(data: bytes) -> bytes:
    """Return the file with sorted metadata, whose order varies between writes of safetensors."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # safetensors aligns the data to 8 bytes
    return len(text).to_bytes(8, "little") + text + data[end:]


def _parse(data: bytes) -> tuple[Tensors, dict[str, str]]:
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    return from_safetensors(data), header["__metadata__"]
