"""Conversion of options from text, TOML and Python values, and back to TOML."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from typing import Any

import numpy as np

from escalade.config.options import HINTS, OPTIONS, Config
from escalade.config.strategy_text import split_strategy
from escalade.config.synonyms import suggest_option
from escalade.config.types import as_type, describe
from escalade.errors import InputError, about
from escalade.storage.files import read_text

Values = dict[str, Any]


def convert(name: str, value: Any) -> Any:
    """Convert a flag's text, or a TOML or Python value, to the type of the option ``name``.

    Raises:
        InputError: the value is invalid; the message names the option and its type.
    """
    annotation = HINTS[name]
    if isinstance(value, np.generic | os.PathLike):
        value = value.item() if isinstance(value, np.generic) else os.fspath(value)
    if annotation == tuple[str, ...] and isinstance(value, str) and not OPTIONS[name].metadata["repeats"]:
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        return as_type(annotation, value)
    except InputError:  # is a ValueError too, and already has a message
        raise
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError):
        raise InputError(f"`{name}` {value!r:.200} is not valid; it must be {describe(annotation)}") from None


def from_values(values: Mapping[str, Any], where: str = "") -> Values:
    """Check the names of TOML or Python options, and convert their values.

    Args:
        values: values by option.
        where: file of the values, for errors.

    Raises:
        InputError: an option is unknown, named with the nearest known option, or a value is invalid.
    """
    with about(where):
        if unknown := [name for name in values if name not in OPTIONS]:
            names = {name: name for name in OPTIONS}
            raise InputError(f"unknown option {unknown[0]!r}{suggest_option(unknown[0], names)}")
        return split_strategy({name: convert(name, value) for name, value in values.items()})


def read_toml(path: str | os.PathLike[str]) -> Values:
    """Read the options in a TOML file.

    Raises:
        InputError: the file cannot be read, is not TOML, or has an unknown option or an invalid value.
    """
    return from_values(parse_toml(path), os.fspath(path))


def parse_toml(path: str | os.PathLike[str]) -> Values:
    """Parse a TOML file.

    Raises:
        InputError: the file cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(read_text(path, "config file"))
    except InputError:  # is a ValueError too, and already has a message
        raise
    except ValueError as problem:  # TOMLDecodeError, or a number with too many digits
        raise InputError(f"config file {path} is not TOML: {problem}") from None


def to_toml(config: Config) -> str:
    """Return TOML text for :func:`read_toml` that sets every option, so that no defaults apply.

    None is written as ``"none"``, except for the run folder, which is then omitted.
    """
    values = {name: "none" if value is None else value for name, value in vars(config).items()}
    if config.run_dir is None:
        del values["run_dir"]
    for name in ("env_kwargs", "strategy_options"):
        if "null" in (text := json.dumps(values[name])):  # TOML has no null, so write JSON text
            values[name] = text
    return toml_text(values)


def toml_text(values: Mapping[str, Any]) -> str:
    """Return TOML text of plain values, without those that are None."""
    lines = [f"{name} = {_toml(value)}" for name, value in values.items() if value is not None]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON strings are TOML basic strings, except for DEL and escapes of characters beyond 16 bits.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items()) + "}"
    return repr(value)
