"""The packages whose versions must be the same on every machine, because they can change a last bit."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata

_PACKAGES = ("escalade", "numpy", "torch", "gymnasium", "envpool", "mujoco", "Box2D")


def versions() -> dict[str, str]:
    """Python, the kind of machine, and every such package that is installed here."""
    found = {"Python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def difference(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """What differs, in words; empty when nothing does. A package that only one side has is no difference."""
    names = [name for name in theirs if name in ours and theirs[name] != ours[name]]
    return ", ".join(f"{name} {theirs[name]} (here {ours[name]})" for name in names)
