"""The backends by name. A new backend is one file and one entry here.

A backend's file has two functions: ``supports(environment)``, whether it runs that environment just as
Gymnasium would, and ``make_vector(environment, slots)``, which makes a
:class:`VectorEnvironment`. It is imported when it is asked for, and imports its package only for an
environment that it may run.
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from escalade.errors import InputError
from escalade.support.imports import import_named
from escalade.support.registry import Entry

if TYPE_CHECKING:
    from escalade.envs.environment import Environment
    from escalade.envs.vector import VectorEnvironment


@dataclass(frozen=True, kw_only=True)
class BackendEntry(Entry):
    """A backend, before its file is imported; its home is that file."""

    most_rows: int
    """Episodes that one process runs at once: where more no longer makes a step cheaper."""
    by_name_only: tuple[str, ...] = ()
    """Beginnings of ids that ``auto`` leaves to a later backend: slower here, or not quite the same."""
    fresh: bool = False
    """True where every episode begins in a new environment, or in the state of one."""
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
    ),
    "gymnasium": BackendEntry("Gymnasium", "escalade.envs.gymnasium_backend", most_rows=64, python=True),
}
"""Backends in the order in which ``auto`` tries them. The last one runs everything."""

CHOICES: Final = ChainMap[str, Any](BACKENDS, {"auto": None})
"""Names that the option takes: ``auto``, and every backend there is, those of a user's module too."""


def settle_backend(environment: Environment) -> Environment:
    """Replace the backend ``auto`` by the fastest one that can run this environment.

    MuJoCo's batch or EnvPool where one has the environment and is faster, Gymnasium elsewhere:
    benchmarks/backends.md has the measurements.

    Raises:
        InputError: the backend was asked for by name and has no such environment.
    """
    if environment.exclusive:
        return environment
    if environment.backend != "auto":
        if environment.backend not in BACKENDS:  # of the environment's module, which a worker imports now
            import_named(environment.module, f"environment {environment.id}")
        entry = BACKENDS[environment.backend]
        if not entry.python and (option := _needs_python(environment)):
            raise InputError(f"`{option}` cannot work on {entry.title}: use `backend=gymnasium`")
        supports = entry.load().supports if entry.installed else lambda environment: False
        if supports(environment):
            return environment
        if environment.info_keys and supports(replace(environment, info_keys=())):
            keys = ",".join(environment.info_keys)
            raise InputError(
                f"`{environment.asked_by(environment.info_keys[-1])}` {keys}: {entry.title} does not give "
                f"these of {environment.id}: use `backend=gymnasium`"
            )
        if environment.early_end is not None and supports(replace(environment, early_end=None)):
            raise InputError(f"`early_end` cannot work on {entry.title}: use `backend=gymnasium`")
        frames = "" if environment.frames.off else ", and options of frames"
        raise InputError(
            f"{entry.title} has no {environment.id} with these arguments and spaces{frames}: use "
            "`backend=gymnasium`"
        )
    for name, entry in BACKENDS.items():
        if environment.id.startswith(entry.by_name_only) or not entry.installed:
            continue
        if not entry.python and _needs_python(environment):
            continue
        if entry.load().supports(environment):
            return replace(environment, backend=name)
    raise AssertionError("the last backend runs everything")


def _needs_python(environment: Environment) -> str | None:
    """The option for which the environment must be a Gymnasium object, if there is one."""
    if environment.wrappers:
        return "wrappers"
    return None if environment.reward_info is None else "reward_info"


def vectorize(environment: Environment, slots: int) -> VectorEnvironment:
    """Slots for up to ``slots`` concurrent episodes, or ``envs_per_worker``, on the environment's backend."""
    if environment.backend == "auto":
        environment = settle_backend(environment)
    slots = min(slots, environment.envs_per_worker or slots)
    vector: VectorEnvironment = BACKENDS[environment.backend].load().make_vector(environment, slots)
    return vector
