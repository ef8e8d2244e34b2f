"""Mappings beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def differing(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names whose value is not the same in all of these, in their order; a missing one is None."""
    names = dict.fromkeys(name for one in mappings for name in one)
    return [name for name in names if any(one.get(name) != mappings[0].get(name) for one in mappings)]


def ordered_text(value: Any) -> str:
    """A text that tells values apart, and not the orders of their keys: ``repr`` with keys sorted."""
    if not isinstance(value, Mapping):
        return repr(value)
    return "{" + ", ".join(f"{key!r}: {ordered_text(each)}" for key, each in sorted(value.items())) + "}"
