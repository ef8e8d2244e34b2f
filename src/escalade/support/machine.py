"""The machine: its cores, for workers and threads, its versions, and the bits of its products.

The bits are those of MKL, by which torch multiplies matrices. Of 32 products in one call, those of each
depend on its place otherwise: sizes that are no multiple of 4 bring it to other bounds of the memory. So a
member's bits would depend on the row that its worker has for it. Rounding alike costs no time that could be
measured, for products of 8 to 1,024 numbers.
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
    "place among others: import escalade first, or set MKL_CBWR=AUTO,STRICT"
)
"""The note to whoever trains a module of torch where :func:`rounds_by_place`."""

_SIZES = ((8, 65), (17, 33), (27, 17), (45, 9))  # of matrices; which of them tell depends on the processor


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


@cache
def versions() -> dict[str, str]:
    """The versions of everything that can change a last bit: Python, machine and packages, by name."""
    import platform
    from importlib import metadata

    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def round_alike() -> None:
    """Have this process, and those that it starts, round a product alike wherever it lies.

    MKL reads the variable in its first call. Where torch has made that already, the variable would reach
    workers alone, whose bits would be others than this process's. Then it is set to nothing, for this process
    and those that it starts, and :func:`rounds_by_place` is True in all of them.
    """
    if _MKL in os.environ:  # the user's own choice, or that of the process that started this one
        return
    os.environ[_MKL] = "AUTO,STRICT"
    if "torch" in sys.modules and rounds_by_place():
        os.environ[_MKL] = ""


def rounds_by_place() -> bool:
    """Return whether the bits of a product depend on its place among others in one call."""
    import torch

    for features, units in _SIZES:
        x = torch.linspace(-1.0, 2.0, features, device="cpu").expand(32, 1, features).contiguous()
        weight = torch.linspace(-3.0, 1.0, features * units, device="cpu").sin().reshape(1, units, features)
        products = torch.bmm(x, weight.expand(32, units, features).contiguous().mT)
        if not torch.equal(products, products[:1].expand_as(products)):
            return True
    return False
