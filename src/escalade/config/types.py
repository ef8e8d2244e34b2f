"""Conversion of text, TOML and Python values to the types of options, and descriptions of these types.

The type of an option is a plain type, or a subclass of ``str`` whose constructor parses the text. The latter
is compared, printed and saved as its text, and raises its own :class:`InputError`.
"""

from __future__ import annotations

import json
import math
import os
import types
from typing import Any, Literal, Union, get_args, get_origin

from escalade.errors import InputError

_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

_WORDS: dict[Any, str] = {
    tuple[str, ...]: "a list of text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple: "whole numbers with commas between, such as 64,64",
    dict: 'a JSON object, such as {"gravity": -5.0}',
}


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type itself in a tuple."""
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def reads_text(annotation: Any) -> bool:
    """Return whether the constructor of this type parses text."""
    return any(
        isinstance(part, type) and issubclass(part, str) and part is not str
        for part in alternatives(annotation)
    )


def describe(annotation: Any) -> str:
    """Describe the values of this type, for errors."""
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(get_args(annotation))
    parts = alternatives(annotation)
    if len(parts) > 1:
        return " or ".join(describe(part) for part in parts if part is not type(None))
    if reads_text(annotation):
        return _WORDS[str]
    return _WORDS[annotation if annotation in _WORDS else get_origin(annotation)]


def absolute(path: Any) -> Any:
    """Make a path absolute, as a simulator may change the working directory later."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or os.fspath(path).startswith("zoo:"):
        return path
    return os.path.join(os.getcwd(), os.fspath(path))


def is_none(value: Any) -> bool:
    """Return True for None and for the text ``none``, as TOML has no null."""
    return value is None or (isinstance(value, str) and value.lower() == "none")


def as_type(annotation: Any, value: Any) -> Any:
    """Convert a value to this type.

    Text is parsed, as flags and TOML strings may hold numbers.

    Raises:
        TypeError, ValueError, LookupError, OverflowError: the value is invalid.
    """
    origin, choices = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _as_one_of(choices, value)
    if origin is Literal:
        if value not in choices:
            raise ValueError
        return value
    if origin in (tuple, dict):
        return _as_dict(value) if origin is dict else _as_tuple(choices[0], value)
    if reads_text(annotation):
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise TypeError
        return annotation(value)
    return _as_plain(annotation, value)


def _as_one_of(choices: tuple[Any, ...], value: Any) -> Any:
    if type(None) in choices and is_none(value):
        return None
    for choice in choices:
        if choice is not type(None):
            try:
                return as_type(choice, value)
            except InputError:  # is a ValueError too, and already has a message
                raise
            except (TypeError, ValueError, OverflowError):
                continue
    raise ValueError


def _as_tuple(kind: type, value: Any) -> tuple[Any, ...]:
    if is_none(value) or (isinstance(value, list) and len(value) == 1 and is_none(value[0])):
        return ()  # for --wrap none
    if isinstance(value, str):
        value = [value] if kind is str else [part for part in value.split(",") if part]
    if kind is int and isinstance(value, int):  # a single number, like 64 on the command line
        value = [value]
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple(as_type(kind, part) for part in value)


def _as_dict(value: Any) -> dict[str, Any]:
    value = json.loads(value) if isinstance(value, str) else value
    if not isinstance(value, dict):
        raise TypeError
    # A resumed run must read the same values back, so anything but plain values raises here.
    found: dict[str, Any] = json.loads(text := json.dumps(value, ensure_ascii=False))
    text.encode()  # raises for text that UTF-8 cannot encode
    return found


def _as_plain(kind: type, value: Any) -> Any:
    if kind is bool:
        return value if isinstance(value, bool) else _BOOLEANS[value.lower()]
    if isinstance(value, bool) or not isinstance(value, str if kind is str else str | int | float):
        raise TypeError
    if kind is str:
        value.encode()  # raises for text that config.toml, in UTF-8, cannot hold
        return value
    number = float(value)
    if math.isnan(number):
        raise ValueError
    return _whole(value, number) if kind is int else number


def _whole(value: Any, number: float) -> int:
    if isinstance(value, int) or (isinstance(value, str) and value.lstrip("+-").isdigit()):
        return int(value)  # exact even if a float is not; 1e6 is allowed too
    if number != int(number):
        raise ValueError
    return int(number)
