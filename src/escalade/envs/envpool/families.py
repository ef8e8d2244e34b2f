"""Imports EnvPool's families of environments, in some processes only the one that is needed.

``import envpool`` registers seventeen families, and one of them imports matplotlib. This takes over a second,
but a run needs only one family. The registry belongs to the process, and a user who imports envpool expects
all of it. Therefore only processes that run nothing but Escalade (the command line, its workers) import a
single family; all others import all of them.
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

_ENTRY = "envpool.entry"  # the module that imports every family
DRAWING = {"render_mode", "from_pixels"}
"""Arguments that make an environment render."""
_lock = threading.Lock()


def import_for(env_id: str) -> Any:
    """Import EnvPool with at least the family of ``env_id``, if it has this id."""
    with _lock:
        if not is_own() or _ENTRY in sys.modules:
            return importlib.import_module("envpool")
        envpool = _without_families()
        if env_id in envpool.list_all_envs():  # already imported by an earlier pool
            return envpool
        for family in _families_that_name(env_id, Path(str(envpool.__file__)).parent):
            if env_id in envpool.list_all_envs():
                break
            importlib.import_module(family)
        if env_id not in envpool.list_all_envs():
            importlib.import_module(_ENTRY)  # all other families
        return envpool


def make_pool(env_id: str, seeds: list[int], max_episode_steps: int | None, **settings: Any) -> Any:
    """Make a pool with one environment for each seed.

    Args:
        env_id: id of EnvPool.
        seeds: seeds of the environments.
        max_episode_steps: step limit, or None for the limit of the id.
        **settings: arguments of EnvPool for these environments.

    Raises:
        EnvironmentFailure: the pool cannot be made, for example because a file is missing.
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
    """Return the package of EnvPool that contains the id, such as ``envpool.mujoco.dmc``."""
    family: str = _registered(env_id)[0]
    return family


def is_mujoco(env_id: str) -> bool:
    """Return True if EnvPool simulates the id with MuJoCo."""
    return family_of(env_id).startswith("envpool.mujoco.")


def _models(env_id: str) -> dict[str, Any]:
    """Return arguments that select models without textures, for an environment of MuJoCo."""
    if not is_mujoco(env_id):
        return {}
    return {"base_path": without_textures(_registered(env_id)[2]["base_path"])}


def _registered(env_id: str) -> tuple[str, str, dict[str, Any]]:
    """Return EnvPool's entry of the id: family, class of its spec, and arguments of the spec."""
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
    """Return the registration modules whose source has the name (``Ant`` of ``Ant-v5``), smallest first."""
    name = env_id.rpartition("-v")[0] or env_id
    files = [file for file in package.rglob("registration.py") if file.parent != package]
    named = [file for file in files if f'"{name}' in file.read_text(encoding="utf-8")]
    named.sort(key=lambda file: file.stat().st_size)
    return [".".join(["envpool", *file.relative_to(package).with_suffix("").parts]) for file in named]
