"""Backends by name.

A new backend is one file and one entry here. A backend's file has two functions. ``supports(environment)``
returns whether the backend runs that environment exactly as Gymnasium does. ``make_vector(environment,
slots)`` returns a :class:`VectorEnvironment`. The file is imported when the backend is used, and imports its
package only for an environment that it may run.
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass
from typing import Any, Final

from escalade.support.registry import Entry


@dataclass(frozen=True, kw_only=True)
class BackendEntry(Entry):
    """A backend before its file is imported. Its home is that file."""

    most_rows: int
    """Episodes that one process runs at once. Beyond this number, steps do not get cheaper."""
    by_name_only: tuple[str, ...] = ()
    """Prefixes of ids that ``auto`` skips, because they are slower here or not exactly the same."""
    fresh: bool = False
    """True if every episode starts in a new environment, or in the state of one."""
    keeps: bool = False
    """True if its vector is a :class:`KeepingVector`."""
    python: bool = False
    """True if it steps Gymnasium's own objects, which can be wrapped and return an info."""


BACKENDS: Final[dict[str, BackendEntry]] = {
    "mujoco": BackendEntry(
        "MuJoCo's batch (of 4.0 and later)",
        "escalade.envs.mujoco.backend",
        packages=("mujoco",),
        extra="mujoco",
        most_rows=1024,
        fresh=True,
        keeps=True,
    ),
    "envpool": BackendEntry(
        "EnvPool",
        "escalade.envs.envpool.backend",
        packages=("envpool",),
        extra="envpool",
        most_rows=1024,
        fresh=True,
        # Each wave needs a fresh pool, and building Humanoid's model takes more time than the pool saves
        # (benchmarks/backends.md). CarRacing is eight times as fast, but its images differ from Gymnasium's
        # (benchmarks/pixels.md).
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
"""Values of the option ``backend``: ``auto`` and all backends, including those of a user's module."""
