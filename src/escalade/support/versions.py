"""The versions of everything that can change a last bit."""

from __future__ import annotations

import platform
from contextlib import suppress
from functools import cache
from importlib import metadata

_PACKAGES = ("numpy", "torch", "gymnasium", "envpool", "mujoco", "Box2D", "ale-py", "pybullet")


def versions() -> dict[str, str]:
    """Python, machine and packages, by name."""
    return dict(_found())


@cache
def _found() -> dict[str, str]:
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
