"""The machine: its cores, which decide how many workers and threads there are, and its versions."""

from __future__ import annotations

import math
import os
import platform
from contextlib import suppress
from functools import cache
from pathlib import Path


def cores() -> int:
    """Cores that this process may use: those that it is bound to, and no more than its container's quota."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(bound, quota())))


@cache
def quota(root: Path = Path("/")) -> float:
    """CPUs that Linux's control groups (version 2) give this process at a time; infinite without a limit.

    Args:
        root: the folder that holds ``proc`` and ``sys``.
    """
    try:
        place = (root / "proc/self/cgroup").read_text().rpartition("0::/")[2].strip()
    except OSError:  # not Linux
        return math.inf
    limits, mount = [math.inf], root / "sys/fs/cgroup"
    for folder in (mount / place, *(mount / place).parents):
        with suppress(OSError, ValueError):  # no such file: the root has none; or "max"
            time, period = (folder / "cpu.max").read_text().split()
            limits.append(int(time) / int(period))
        if folder == mount:
            break
    return min(limits)


_PACKAGES = ("numpy", "torch", "gymnasium", "envpool", "mujoco", "Box2D", "ale-py", "pybullet")


@cache
def versions() -> dict[str, str]:
    """The versions of everything that can change a last bit: Python, machine and packages, by name."""
    from importlib import metadata

    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
