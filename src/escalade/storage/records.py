"""Dataclasses from plain values: what a file says is checked in one place, before it is used."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from escalade.storage.tensors import Damaged

T = TypeVar("T")

LARGEST = 2**63 - 1
"""The largest whole number in a record: more is no count of anything."""


def record(kind: type[T], values: Any, where: str) -> T:
    """The dataclass ``kind`` with the fields in ``values``, as ``dataclasses.asdict`` gave them.

    Fields may hold None, bool, int, float, str, lists and dicts of those, and dataclasses.

    Args:
        kind: the dataclass.
        values: a dict of field names to values, as it was read from a file.
        where: what ``values`` are, for errors.

    Raises:
        Damaged: a field is missing or unknown, or holds a value of another type.
    """
    if not isinstance(values, Mapping):
        raise Damaged(f"{where} is missing, or not a table")
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise Damaged(f"{where} has a field {str(name)[:80]!r} that this version does not know")
    hints = get_type_hints(kind)
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise Damaged(f"{where} has no {name!r}")
    return kind(**{name: _value(hints[name], value, f"{where}: {name}") for name, value in values.items()})


def _value(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _first_that_fits(arguments, value, where)
    if is_dataclass(hint) and isinstance(hint, type):
        return record(hint, value, where)
    if origin is dict and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _value(arguments[1], item, where) for key, item in value.items()}
    if origin is list and isinstance(value, list):
        return [_value(arguments[0], item, where) for item in value]
    if hint is Any or (origin is None and _is(hint, value)):
        return float(value) if hint is float else value
    raise Damaged(f"{where} holds a {type(value).__name__}, which it cannot be")


def _first_that_fits(hints: tuple[Any, ...], value: Any, where: str) -> Any:
    for hint in hints:
        try:
            return _value(hint, value, where)
        except Damaged:
            continue
    raise Damaged(f"{where} holds a {type(value).__name__}, which it cannot be")


def _is(kind: Any, value: Any) -> bool:
    if kind is type(None):
        return value is None
    if isinstance(value, bool):
        return kind is bool
    if isinstance(value, int):
        return kind in (int, float) and abs(value) <= LARGEST
    return isinstance(value, kind)
