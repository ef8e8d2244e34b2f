"""Imports EnvPool's families of environments: only the one that is needed, where that leaves no trace.

``import envpool`` registers seventeen families, and one of them imports matplotlib: over a second, of
which a run needs the part of one family. The registry is the process's own: a user who imports envpool
must find all of it. So only processes that run nothing but Escalade (the command line, its workers)
import one family; everyone else imports all.
"""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

from escalade.envs.envpool.models import without_textures
from escalade.envs.process import quiet
from escalade.errors import EnvironmentFailure
from escalade.support.own_process import is_own

_ENTRY = "envpool.entry"  # the module of EnvPool that imports every family
DRAWING = {"render_mode", "from_pixels"}
"""Arguments with which an environment draws."""
_lock = threading.Lock()


def import_for(env_id: str) -> Any:
    """EnvPool, with at least the family that has ``env_id``, if it has that id at all."""
    with _lock:
        if not is_own() or _ENTRY in sys.modules:
            return importlib.import_module("envpool")
        envpool = _without_families()
        if env_id in envpool.list_all_envs():  # as for every pool of a run but the first
            return envpool
        for family in _families_that_name(env_id, Path(str(envpool.__file__)).parent):
            if env_id in envpool.list_all_envs():
                break
            importlib.import_module(family)
        if env_id not in envpool.list_all_envs():
            importlib.import_module(_ENTRY)  # all that are left
        return envpool


def make_pool(env_id: str, seeds: list[int], max_episode_steps: int | None, **settings: Any) -> Any:
    """A pool of one environment for each seed; without a limit of steps, the id's own holds.

    ``settings`` are arguments of EnvPool's for these environments.

    Raises:
        EnvironmentFailure: it could not be made: a file is missing.
    """
    limit = {} if max_episode_steps is None else {"max_episode_steps": max_episode_steps}
    envpool = import_for(env_id)
    models = {} if DRAWING & settings.keys() else _models(env_id)
    options = {"num_envs": len(seeds), "num_threads": 1, "seed": seeds} | models | settings | limit
    try:
        with quiet():
            return envpool.make(env_id, env_type="gymnasium", **options)
    except RuntimeError as problem:
        raise EnvironmentFailure(f"environment {env_id} failed to start: {problem}") from problem


def family_of(env_id: str) -> str:
    """The package of EnvPool's that has the id, such as ``envpool.mujoco.dmc``."""
    family: str = _registered(env_id)[0]
    return family


def is_mujoco(env_id: str) -> bool:
    """Return whether EnvPool steps the id by MuJoCo."""
    return family_of(env_id).startswith("envpool.mujoco.")


def _models(env_id: str) -> dict[str, Any]:
    """Arguments that take models without pictures, for an environment that has models."""
    if not is_mujoco(env_id):
        return {}
    return {"base_path": without_textures(_registered(env_id)[2]["base_path"])}


def _registered(env_id: str) -> tuple[str, str, dict[str, Any]]:
    """EnvPool's entry for the id: its family, the class of its spec, and the arguments that this has."""
    import_for(env_id)
    entry: tuple[str, str, dict[str, Any]] = importlib.import_module("envpool.registration").registry.specs[
        env_id
    ]
    return entry


def _without_families() -> Any:
    if "envpool" not in sys.modules:
        sys.modules[_ENTRY] = ModuleType(_ENTRY)
        try:
            return importlib.import_module("envpool")
        finally:
            del sys.modules[_ENTRY]
    return sys.modules["envpool"]


def _families_that_name(env_id: str, package: Path) -> list[str]:
    """Registration modules whose text holds the id's name (``Ant`` of ``Ant-v5``), the smallest first."""
    name = env_id.rpartition("-v")[0] or env_id
    files = [file for file in package.rglob("registration.py") if file.parent != package]
    named = [file for file in files if f'"{name}' in file.read_text(encoding="utf-8")]
    named.sort(key=lambda file: file.stat().st_size)
    return [".".join(["envpool", *file.relative_to(package).with_suffix("").parts]) for file in named]
