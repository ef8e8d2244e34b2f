"""The backends by name. A new backend is one file and one entry here.

A backend's file has two functions: ``supports(environment)``, whether it runs that environment just as
Gymnasium would, and ``make_vector(environment, slots)``, which makes a
:class:`VectorEnvironment`. It is imported when it is asked for, and imports its package only for an
environment that it may run.
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass
from typing import Any, Final

from escalade.support.registry import Entry


@dataclass(frozen=True, kw_only=True)
class BackendEntry(Entry):
    """A backend, before its file is imported; its home is that file."""

    most_rows: int
    """Episodes that one process runs at once: where more no longer makes a step cheaper."""
    by_name_only: tuple[str, ...] = ()
    """Beginnings of ids that ``auto`` leaves to a later backend: slower here, or not quite the same."""
    fresh: bool = False
    """True where every episode begins in a new environment, or in the state of one."""
    keeps: bool = False
    """True where its slots are a :class:`KeepingVector`."""
    python: bool = False
    """True where it steps Gymnasium's own objects, which can be wrapped and give an info."""


BACKENDS: Final[dict[str, BackendEntry]] = {
    "mujoco": BackendEntry(
        "MuJoCo's batch (of 4.0 and later)",
        "escalade.envs.mujoco.backend",
        packages=("mujoco",),
        extra="mujoco",
        most_rows=1024,
        fresh=True,
    ),
    "envpool": BackendEntry(
        "EnvPool",
        "escalade.envs.envpool.backend",
        packages=("envpool",),
        extra="envpool",
        most_rows=1024,
        fresh=True,
        # Each wave needs a fresh pool, and Humanoid's model takes longer to build than is won back:
        # benchmarks/backends.md. CarRacing is eight times as fast, but its pictures are not Gymnasium's:
        # benchmarks/pixels.md.
        by_name_only=("Humanoid-", "CarRacing-"),
    ),
    "ale": BackendEntry(
        "ALE",
        "escalade.envs.pixels.ale_backend",
        packages=("ale_py",),
        extra="atari",
        most_rows=64,
        fresh=True,
        keeps=True,
    ),
    "gymnasium": BackendEntry("Gymnasium", "escalade.envs.gymnasium_backend", most_rows=64, python=True),
    "batched": BackendEntry("a batched world", "escalade.wings.worlds.rollouts", most_rows=4096, fresh=True),
}
"""Backends in the order in which ``auto`` tries them. ``gymnasium`` runs everything but batched worlds."""

CHOICES: Final = ChainMap[str, Any](BACKENDS, {"auto": None})
"""Names that the option takes: ``auto``, and every backend there is, those of a user's module too."""
