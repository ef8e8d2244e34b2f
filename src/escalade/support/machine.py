"""The machine: its cores, which decide how many workers and threads there are, and its versions."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path


def cores() -> int:
    """Cores that this process may use: those that it is bound to, and no more than its container's quota."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(bound, quota())))


@cache
def quota(root: Path = Path("/")) -> float:
    """CPUs that Linux's control groups give this process at a time; infinite without a limit.

    Args:
        root: the folder that holds ``proc`` and ``sys``.
    """
    return min(_limits(root), default=math.inf)


def _limits(root: Path) -> Iterator[float]:
    """The limit of each control group that the process is in, where it has one."""
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in groups:
        _, controllers, place = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        inner = mount / place.lstrip("/")
        for folder in (inner, *inner.parents):
            yield from _limit(folder)
            if folder == mount:
                break


def _limit(folder: Path) -> Iterator[float]:
    """CPUs by cpu.max (version 2), or by cpu.cfs_quota_us and cpu.cfs_period_us (version 1)."""
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        try:
            time, period = " ".join((folder / name).read_text() for name in names).split()
            if time != "max" and int(time) > 0:
                yield int(time) / int(period)
        except (OSError, ValueError, ZeroDivisionError):  # no such file: the root has none
            continue


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
