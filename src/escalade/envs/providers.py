"""Packages that environments need: imports those that register ids, and names those that are missing."""

from __future__ import annotations

import importlib
import importlib.util
import re

import gymnasium
from gymnasium.envs.registration import EnvSpec

from escalade.envs.process import quiet
from escalade.errors import InputError
from escalade.support.imports import install
from escalade.support.shared import without_warnings

_PROVIDERS = {
    "ale_py": ("atari", re.compile(r"ALE/|.*(NoFrameskip|Deterministic)-v\d+$")),
    "pybullet_envs_gymnasium": ("pybullet", re.compile(r".*Bullet(Deriv)?Env-v\d+$")),
}
"""Extras that install each package, and patterns of ids that only it has."""


def register_all() -> None:
    """Import all installed packages that register environments."""
    for package in _PROVIDERS:
        if importlib.util.find_spec(package) is not None:
            with quiet():
                importlib.import_module(package)


def register(env_id: str) -> None:
    """Import the package that registers ``env_id``, if there is one.

    Raises:
        InputError: the package is missing; the message contains the command that installs it.
    """
    if env_id in gymnasium.registry:
        return
    for package, (extra, ids) in _PROVIDERS.items():
        sure = ids.match(env_id) is not None
        if importlib.util.find_spec(package) is None:
            if sure:
                raise InputError(f"environment {env_id} needs a package; {install(extra)}")
        elif sure or package == "ale_py":  # older ids of Atari, such as Pong-v4, do not match the pattern
            with without_warnings():
                importlib.import_module(package)


_EXTRAS = {
    "mujoco": "gymnasium.envs.mujoco",
    "box2d": "gymnasium.envs.box2d",
    "classic": "gymnasium.envs.classic_control",
    "pybullet": "pybullet_envs_gymnasium",
}
"""Packages whose environments need each of Escalade's extras."""


def pip_line(spec: EnvSpec, problem: Exception) -> str:
    """Return the command that installs the missing package of an environment."""
    if "cv2" in str(problem):
        return install("pixels")
    entry = spec.entry_point if isinstance(spec.entry_point, str) else ""
    for extra, place in _EXTRAS.items():
        if entry.startswith(place):
            return install(extra)
    return str(problem)
