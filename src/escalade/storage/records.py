"""The contents that a file must have, declared once: dataclasses for plain values, a schema for arrays."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from escalade.storage.tensors import Damaged, OfLaterVersion, Tensors

T = TypeVar("T")

LARGEST = 2**63 - 1
"""The largest whole number in a record: more is no count of anything."""

Count = Annotated[int, 0]
"""A whole number of at least 0. ``Annotated[X, LEAST, MOST]`` is an X from LEAST to MOST, if any."""
MOST_SECONDS = 10**12
"""The longest time in a record, 30,000 years: sums are finite, and a duration can be written."""
Seconds = Annotated[float, 0, MOST_SECONDS]


@dataclass(frozen=True)
class Numbers:
    """An array's type and shape, and the least that its numbers may be; a text names a size of the shape."""

    dtype: str
    shape: tuple[int | str, ...]
    least: float = -math.inf
    finite: bool = True

    @classmethod
    def like(cls, array: NDArray[Any]) -> Self:
        """Finite numbers of this array's type and shape."""
        return cls(str(array.dtype), array.shape)


def check_arrays(tensors: Tensors, schema: Mapping[str, Numbers], where: str, **sizes: int) -> dict[str, int]:
    """Check the arrays that ``schema`` names; others beside them are left alone.

    Args:
        tensors: arrays by name, as they were read from a file.
        schema: what each must be.
        where: what holds them, for errors.
        sizes: those that are known of the schema's; the others are the first array's that has them.

    Returns:
        All the sizes that the schema names.

    Raises:
        Damaged: an array is missing, of another type or shape, or holds numbers that it cannot.
    """
    for name, wanted in schema.items():
        found = tensors.get(name)
        if found is None:
            raise Damaged(f"{where} has no {name}")
        named = zip(wanted.shape, found.shape, strict=False)  # shapes of two lengths do not match below
        sizes = {part: size for part, size in named if isinstance(part, str)} | sizes
        shape = tuple(sizes.get(str(part), part) for part in wanted.shape)
        if found.dtype != wanted.dtype or found.shape != shape:
            raise Damaged(
                f"{where}: {name} is {found.dtype} of shape {found.shape}, not {wanted.dtype} of {shape}"
            )
        if wanted.finite and found.dtype.kind == "f" and not np.isfinite(found).all():
            raise Damaged(f"{where}: {name} is not finite")
        if (found < wanted.least).any():
            raise Damaged(f"{where}: {name} is below {wanted.least:g}")
    return sizes


def record(kind: type[T], values: Any, where: str) -> T:
    """The dataclass ``kind`` with the fields in ``values``, as ``dataclasses.asdict`` gave them.

    Fields may hold bool, int, float, str, lists and dicts of those, and dataclasses; each also ``| None``.

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
            raise OfLaterVersion(f"{where} has a field {str(name)[:80]!r} that this version does not know")
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise Damaged(f"{where} has no {name!r}")
    hints = get_type_hints(kind, include_extras=True)
    return kind(**{name: checked(hints[name], value, f"{where}: {name}") for name, value in values.items()})


def checked(hint: Any, value: Any, where: str) -> Any:
    """``value`` as what ``hint`` says it is; a whole number does for a float.

    Raises:
        Damaged: it is something else, or beyond its range.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return None if value is None else checked(arguments[0], value, where)
    if origin is Annotated:
        found = checked(arguments[0], value, where)
        if not found >= arguments[1]:
            raise Damaged(f"{where} is {found}, below {arguments[1]}")
        if len(arguments) > 2 and found > arguments[2]:
            raise Damaged(f"{where} is {found}, above {arguments[2]}")
        return found
    if is_dataclass(hint) and isinstance(hint, type):
        return record(hint, value, where)
    if origin is dict and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: checked(arguments[1], item, where) for key, item in value.items()}
    if origin is list and isinstance(value, list):
        return [checked(arguments[0], item, where) for item in value]
    if hint is Any or (origin is None and _is(hint, value)):
        return float(value) if hint is float else value
    raise Damaged(f"{where} holds a {type(value).__name__}, which it cannot be")


def _is(kind: Any, value: Any) -> bool:
    if isinstance(value, bool):
        return kind is bool
    if isinstance(value, int):
        return kind in (int, float) and abs(value) <= LARGEST
    return isinstance(value, kind)
