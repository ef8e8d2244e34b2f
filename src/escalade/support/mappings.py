"""Mappings beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def differing(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names whose value is not the same in all of these, in their order; a missing one is None."""
    names = dict.fromkeys(name for one in mappings for name in one)
    return [name for name in names if any(one.get(name) != mappings[0].get(name) for one in mappings)]
