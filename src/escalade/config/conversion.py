"""Options from text, TOML and Python values, and back."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from typing import Any

import numpy as np

from escalade.config.options import HINTS, OPTIONS, Config
from escalade.config.strategy_text import split_strategy
from escalade.config.synonyms import meant
from escalade.config.types import as_type, describe
from escalade.errors import InputError, about
from escalade.storage.files import read_text

Values = dict[str, Any]


def convert(name: str, value: Any) -> Any:
    """Turn a flag's text, or a TOML or Python value, into what the option ``name`` holds.

    Raises:
        InputError: it cannot be; the message names the option and what it takes.
    """
    annotation = HINTS[name]
    if isinstance(value, np.generic | os.PathLike):
        value = value.item() if isinstance(value, np.generic) else os.fspath(value)
    if annotation == tuple[str, ...] and isinstance(value, str) and not OPTIONS[name].metadata["repeats"]:
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        return as_type(annotation, value)
    except InputError:  # a ValueError too, and already in words
        raise
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError):
        raise InputError(f"`{name}` {value!r:.200} is not valid: it takes {describe(annotation)}") from None


def from_values(values: Mapping[str, Any], where: str = "") -> Values:
    """Check option names and types of TOML or Python values.

    Raises:
        InputError: an unknown option, named with its nearest, one that went, or a value of another type.
    """
    with about(where):
        if unknown := [name for name in values if name not in OPTIONS]:
            names = {name: name for name in OPTIONS}
            raise InputError(f"unknown option {unknown[0]!r}{meant(unknown[0], names)}")
        return split_strategy({name: convert(name, value) for name, value in values.items()})


def read_toml(path: str | os.PathLike[str]) -> Values:
    """Options of a TOML file.

    Raises:
        InputError: it cannot be read, is not TOML, or holds an unknown or mistyped option.
    """
    return from_values(parse_toml(path), os.fspath(path))


def parse_toml(path: str | os.PathLike[str]) -> Values:
    """Parse a TOML file.

    Raises:
        InputError: it cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(read_text(path, "config file"))
    except InputError:  # a ValueError too, and already in words
        raise
    except ValueError as problem:  # TOMLDecodeError is one, and so is a number of too many digits
        raise InputError(f"config file {path} is not TOML: {problem}") from None


def to_toml(config: Config) -> str:
    """The TOML text that :func:`read_toml` reads back. It says every option, so that nothing fills it in.

    What is None reads ``"none"``; but for the run's folder, which is then left out.
    """
    values = {name: "none" if value is None else value for name, value in vars(config).items()}
    if config.run_dir is None:
        del values["run_dir"]
    for name in ("env_kwargs", "strategy_options"):
        if "null" in (text := json.dumps(values[name])):  # which TOML has not: the JSON text says it
            values[name] = text
    return toml_text(values)


def toml_text(values: Mapping[str, Any]) -> str:
    """TOML of plain values; those that are None are left out."""
    lines = [f"{name} = {_toml(value)}" for name, value in values.items() if value is not None]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # A JSON string is a TOML basic string, but for DEL and the escapes of what lies beyond 16 bits.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items()) + "}"
    return repr(value)
