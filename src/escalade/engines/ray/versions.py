"""The packages whose versions must be the same on every machine, because they can change a last bit."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata

from escalade.support.versions import versions


def all_versions() -> dict[str, str]:
    """Escalade's own version, and those of all that can change a last bit."""
    return {"escalade": metadata.version("escalade")} | versions()


def difference(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """Name what differs; empty when nothing does. A package that only one side has is no difference."""
    names = [name for name in theirs if name in ours and theirs[name] != ours[name]]
    return ", ".join(f"{name} {theirs[name]} (here {ours[name]})" for name in names)
