"""Values of a type, from text, TOML or Python, and the types in words.

A type is that of an option: a plain one, or a subclass of ``str`` that reads its text when it is made. The
latter compares, prints and is saved as its text, and raises an :class:`InputError` of its own.
"""

from __future__ import annotations

import json
import math
import os
import types
from typing import Any, Literal, Union, get_args, get_origin

from escalade.errors import InputError

_LARGEST = 10**60
"""The largest whole number: far beyond every limit, and short enough to be printed in an error."""

_DEEPEST = 20
"""Levels of tables and lists in ``env_kwargs``; what writes them back would run out of stack much later."""

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
    """The types of a union; one alone otherwise."""
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def reads_text(annotation: Any) -> bool:
    """Tell whether values of this type read their text when they are made."""
    return any(
        isinstance(part, type) and issubclass(part, str) and part is not str
        for part in alternatives(annotation)
    )


def describe(annotation: Any) -> str:
    """Describe the values of this type, for someone who gave another."""
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(get_args(annotation))
    parts = alternatives(annotation)
    if len(parts) > 1:
        return " or ".join(describe(part) for part in parts if part not in (type(None), os.PathLike[str]))
    if reads_text(annotation):
        return _WORDS[str]
    return _WORDS[annotation if annotation in _WORDS else get_origin(annotation)]


def absolute(path: Any) -> Any:
    """Return a path of the user's as an absolute one: a simulator may change the working directory later."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or os.fspath(path).startswith("zoo:"):
        return path
    return os.path.join(os.getcwd(), os.fspath(path))


def is_none(value: Any) -> bool:
    """Tell whether this is None, or the text that stands for it: TOML has no null."""
    return value is None or (isinstance(value, str) and value.lower() == "none")


def as_type(annotation: Any, value: Any, text: bool = False) -> Any:
    """The value as this type has it.

    Args:
        annotation: the type.
        value: what is to have it.
        text: whether it is text in any case, as a flag has it, which says numbers too.

    Raises:
        TypeError, ValueError, OverflowError: it cannot be.
    """
    origin, choices = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _as_one_of(choices, value, text)
    if origin is Literal:
        if value not in choices:
            raise ValueError
        return value
    if origin is os.PathLike:
        if not isinstance(value, os.PathLike):
            raise TypeError
        return _as_plain(str, os.fspath(value), text)
    if origin in (tuple, dict):
        return _as_dict(value) if origin is dict else _as_tuple(choices[0], value, text)
    if reads_text(annotation):
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise TypeError
        return annotation(value)
    return _as_plain(annotation, value, text)


def _as_one_of(choices: tuple[Any, ...], value: Any, text: bool) -> Any:
    if type(None) in choices and is_none(value):
        return None
    if value is None and Literal["none"] in choices:
        return "none"
    for choice in choices:
        if choice is not type(None):
            try:
                return as_type(choice, value, text)
            except InputError:  # a ValueError too, and already in words
                raise
            except (TypeError, ValueError, OverflowError):
                continue
    raise ValueError


def _as_tuple(kind: type, value: Any, text: bool) -> tuple[Any, ...]:
    if isinstance(value, str):
        value = [value] if kind is str else [part for part in value.split(",") if part]
    if kind is int and isinstance(value, int):  # one number, as 64 on the command line
        value = [value]
    if not isinstance(value, list | tuple | None):
        raise TypeError
    return tuple(as_type(kind, part, text) for part in value or ())


def _as_dict(value: Any) -> dict[str, Any]:
    value = json.loads(value) if isinstance(value, str) else value
    if not isinstance(value, dict) or _depth(value) > _DEEPEST:
        raise TypeError
    # As a run records it, and reads it back when it is resumed: anything but plain values raises here.
    found: dict[str, Any] = json.loads(text := json.dumps(value, ensure_ascii=False))
    text.encode()  # nor is what UTF-8 has not
    return found


def _as_plain(kind: type, value: Any, text: bool) -> Any:
    if kind is bool and text:
        return _BOOLEANS[value.lower()]
    if isinstance(value, bool) != (kind is bool):
        raise TypeError
    if kind is bool:
        return value
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


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return 1 + max((_depth(item) for item in inner), default=0)
