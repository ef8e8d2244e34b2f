"""Packages that environments need: those that register ids only when they are imported, and the extras."""

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
"""Packages: Escalade's extra that installs each, and ids that nothing else has."""


def register_all() -> None:
    """Import all of these packages that are installed."""
    for package in _PROVIDERS:
        if importlib.util.find_spec(package) is not None:
            with quiet():
                importlib.import_module(package)


def register(env_id: str) -> None:
    """Import the package that registers ``env_id``, if that is what it needs.

    Raises:
        InputError: the package is missing; the message says how to install it.
    """
    if env_id in gymnasium.registry:
        return
    for package, (extra, ids) in _PROVIDERS.items():
        sure = ids.match(env_id) is not None
        if importlib.util.find_spec(package) is None:
            if sure:
                raise InputError(f"environment {env_id} needs a package; {install(extra)}")
        elif sure or package == "ale_py":  # Atari's older ids, such as Pong-v4, have no mark
            with without_warnings():
                importlib.import_module(package)


_EXTRAS = {
    "mujoco": "gymnasium.envs.mujoco",
    "box2d": "gymnasium.envs.box2d",
    "classic": "gymnasium.envs.classic_control",
    "pybullet": "pybullet_envs_gymnasium",
}
"""The places of environments that need one of Escalade's extras."""


def pip_line(spec: EnvSpec, problem: Exception) -> str:
    """The command that installs the package that an environment misses."""
    if "cv2" in str(problem):
        return install("pixels")
    entry = spec.entry_point if isinstance(spec.entry_point, str) else ""
    for extra, place in _EXTRAS.items():
        if entry.startswith(place):
            return install(extra)
    return str(problem)
