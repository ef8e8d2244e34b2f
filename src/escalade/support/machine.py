"""The machine: its cores, its versions, and reproducible rounding of matrix products.

torch multiplies matrices with MKL. By default, the last bits of each of 32 products in one call depend on its
position, because sizes that are not a multiple of 4 change its memory alignment. A member's result would then
depend on its row in the worker's batch. MKL's strict mode avoids this, at no measurable cost for products of
8 to 1,024 numbers.
"""

from __future__ import annotations

import math
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

_PACKAGES = ("numpy", "torch", "gymnasium", "envpool", "mujoco", "Box2D", "ale-py", "pybullet")
_MKL = "MKL_CBWR"
BY_PLACE = (
    "torch was used before escalade was imported, so the last bits of its products may depend on a member's "
    "position in the batch; import escalade first, or set MKL_CBWR=AUTO,STRICT"
)
"""The note for runs that train a torch module while :func:`rounds_by_place` is True."""

_SIZES = ((8, 65), (17, 33), (27, 17), (45, 9))  # of matrices; the effect shows in some, by processor


def cores() -> int:
    """Return the number of cores that this process may use, by its affinity and its container's quota."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(bound, quota())))


@cache
def quota(root: Path = Path("/")) -> float:
    """Return the CPU limit of this process in Linux control groups (version 2), or infinity.

    Args:
        root: the folder that holds ``proc`` and ``sys``.
    """
    try:
        place = (root / "proc/self/cgroup").read_text().rpartition("0::/")[2].strip()
    except OSError:  # not Linux
        return math.inf
    limits, mount = [math.inf], root / "sys/fs/cgroup"
    for folder in (mount / place, *(mount / place).parents):
        with suppress(OSError, ValueError):  # the root has no such file, and its content may be "max"
            time, period = (folder / "cpu.max").read_text().split()
            limits.append(int(time) / int(period))
        if folder == mount:
            break
    return min(limits)


@cache
def versions() -> dict[str, str]:
    """Return the versions of everything that can affect last bits: Python, machine and packages."""
    import platform
    from importlib import metadata

    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def round_alike() -> None:
    """Make products independent of their position in this process and in those that it starts.

    MKL reads the variable in its first call. If torch has already called MKL, the variable would affect
    workers only, and their last bits would differ from this process's. In that case it is set to an empty
    string, for this process and its workers, and :func:`rounds_by_place` is True in all of them.
    """
    if _MKL in os.environ:  # set by the user or by the process that started this one
        return
    os.environ[_MKL] = "AUTO,STRICT"
    if "torch" in sys.modules and rounds_by_place():
        os.environ[_MKL] = ""


def rounds_by_place() -> bool:
    """Return True if the last bits of a product depend on its position in a batched call."""
    import torch

    for features, units in _SIZES:
        x = torch.linspace(-1.0, 2.0, features, device="cpu").expand(32, 1, features).contiguous()
        weight = torch.linspace(-3.0, 1.0, features * units, device="cpu").sin().reshape(1, units, features)
        products = torch.bmm(x, weight.expand(32, units, features).contiguous().mT)
        if not torch.equal(products, products[:1].expand_as(products)):
            return True
    return False
