"""Options from text, TOML and Python values, and back."""

from __future__ import annotations

import json
import math
import os
import tomllib
import types
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from escalade.config.forms import HINTS, describe
from escalade.config.options import OPTIONS, Config
from escalade.config.strategy_text import split_strategy
from escalade.config.synonyms import meant
from escalade.errors import InputError, about
from escalade.storage.files import read_text

Values = dict[str, Any]

_LARGEST = 10**60
"""The largest whole number: far beyond every limit, and short enough to be printed in an error."""

_DEEPEST = 20
"""Levels of tables and lists in ``env_kwargs``; what writes them back would run out of stack much later."""

_DEEPEST_TEXT = 100
"""Brackets of a TOML text that are open at a time; those in strings count too."""
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


def convert(name: str, value: Any, *, text: bool) -> Any:
    """Turn a flag's text, or a TOML or Python value, into what the option ``name`` holds.

    Raises:
        InputError: it cannot be; the message names the option and what it takes.
    """
    annotation = HINTS[name]
    value = value.item() if isinstance(value, np.generic) else value
    if get_origin(annotation) is tuple and _is_none(name, value):
        return ()
    if annotation == tuple[str, ...] and isinstance(value, str) and OPTIONS[name].metadata["flag"] is None:
        value = [part.strip() for part in value.split(",") if part.strip()]  # an option that is given once
    try:
        return as_type(annotation, value, text)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise InputError(f"`{name}` {_short(value)} is not valid: it takes {describe(annotation)}") from None


def _is_none(name: str, value: Any) -> bool:
    """True for ``none``, also as the one value of an option that is given again for each."""
    if OPTIONS[name].metadata["repeats"] and isinstance(value, list) and len(value) == 1:
        value = value[0]
    return isinstance(value, str) and value.lower() == "none"


def from_values(values: Mapping[str, Any], where: str = "") -> Values:
    """Check option names and types of TOML or Python values.

    Raises:
        InputError: an unknown option, named with its nearest, one that went, or a value of another type.
    """
    with about(where):
        if unknown := [name for name in values if name not in OPTIONS]:
            names = {name: name for name in OPTIONS}
            raise InputError(f"unknown option {unknown[0]!r}{meant(unknown[0], names)}")
        return split_strategy({name: convert(name, value, text=False) for name, value in values.items()})


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
        text = read_text(path, "config file")
        # Counted: where the parser meets the end of the stack, finalizers that run then complain too.
        if max(accumulate((_STEPS.get(sign, 0) for sign in text), initial=0)) > _DEEPEST_TEXT:
            raise InputError(f"config file {path} is nested too deeply")
        return tomllib.loads(text)
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
        if _holds_null(values[name]):  # which TOML has not: the JSON text says it
            values[name] = json.dumps(values[name])
    return toml_text(values)


def toml_text(values: Mapping[str, Any]) -> str:
    """TOML of plain values; those that are None are left out."""
    lines = [f"{name} = {_toml(value)}" for name, value in values.items() if value is not None]
    return "\n".join(lines) + "\n"


def as_type(annotation: Any, value: Any, text: bool = False) -> Any:
    """The value as this type has it; a TypeError, ValueError or OverflowError where it cannot be."""
    origin, choices = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _convert_union(choices, value, text)
    if origin is Literal:
        if value not in choices:
            raise ValueError
        return value
    if origin is os.PathLike:
        if not isinstance(value, os.PathLike):
            raise TypeError
        return _convert_scalar(str, os.fspath(value), text)
    if origin is tuple:
        return _convert_tuple(choices[0], value, text)
    if origin is dict:
        return _convert_dict(value)
    return _convert_scalar(annotation, value, text)


def _convert_tuple(kind: type, value: Any, text: bool) -> tuple[Any, ...]:
    if isinstance(value, str):
        value = [value] if kind is str else [part for part in value.split(",") if part]
    if kind is int and isinstance(value, int):  # one number, as 64 on the command line
        value = [value]
    if not isinstance(value, list | tuple | None):
        raise TypeError
    return tuple(as_type(kind, part, text) for part in value or ())


def _convert_dict(value: Any) -> dict[str, Any]:
    value = json.loads(value) if isinstance(value, str) else value
    if not isinstance(value, dict) or _depth(value) > _DEEPEST:
        raise TypeError
    # As a run records it, and reads it back when it is resumed: anything but plain values raises here.
    found: dict[str, Any] = json.loads(text := json.dumps(value, ensure_ascii=False))
    text.encode()  # nor is what UTF-8 has not
    return found


def _convert_union(choices: tuple[Any, ...], value: Any, text: bool) -> Any:
    if type(None) in choices and (value is None or (isinstance(value, str) and value.lower() == "none")):
        return None  # TOML has no null
    if value is None and Literal["none"] in choices:
        return "none"
    for choice in choices:
        if choice is not type(None):
            try:
                return as_type(choice, value, text)
            except (TypeError, ValueError, OverflowError):
                continue
    raise ValueError


_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _convert_scalar(kind: type, value: Any, text: bool) -> Any:
    if kind is bool:
        if text:
            if value.lower() not in _BOOLEANS:
                raise ValueError
            return _BOOLEANS[value.lower()]
        if not isinstance(value, bool):
            raise TypeError
        return value
    if isinstance(value, bool):
        raise TypeError
    if kind is str:
        if not isinstance(value, str):
            raise TypeError
        value.encode()  # as config.toml has it: what is not UTF-8 raises here
        return value
    if kind is int:
        return _whole_number(value, text)
    if not text and not isinstance(value, int | float):
        raise TypeError
    number = float(value)
    if math.isnan(number):
        raise ValueError
    return number


def _whole_number(value: Any, text: bool) -> int:
    number = float(value) if text or isinstance(value, float) else value
    if text and value.lstrip("+-").isdigit():
        number = int(value)  # exact where a float is not; 1e6 is welcome too
    if number != int(number) or abs(number) > _LARGEST:
        raise ValueError
    return int(number)


def _short(value: Any) -> str:
    """The value as an error shows it: not too long, and without digits that Python refuses to print."""
    try:
        shown = repr(value)
    except (ValueError, RecursionError):
        return "given"
    return shown if len(shown) <= 200 else f"{shown[:200]}..."


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return 1 + max((_depth(item) for item in inner), default=0)


def _holds_null(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return value is None or any(_holds_null(item) for item in inner)


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
