"""Packages that environments need: imports those that register ids, and names those that are missing."""

from __future__ import annotations

import importlib
import re

import gymnasium
from gymnasium.envs.registration import EnvSpec

from escalade.envs.process import quiet
from escalade.support.imports import check_installed, install, missing
from escalade.support.shared import without_warnings

_PROVIDERS = {
    "ale_py": ("atari", re.compile(r"ALE/|.*(NoFrameskip|Deterministic)-v\d+$")),
    "pybullet_envs_gymnasium": ("pybullet", re.compile(r".*Bullet(Deriv)?Env-v\d+$")),
}
"""Extras that install each package, and patterns of ids that only it has."""


def register_all() -> None:
    """Import all installed packages that register environments."""
    for package in _PROVIDERS:
        if not missing(package):
            with quiet():
                importlib.import_module(package)


def register(env_id: str) -> None:
    """Import the package that registers ``env_id``, if there is one.

    Raises:
        InputError: the package is missing; the message contains the command that installs it.
    """
    if env_id in gymnasium.registry:
        return
    check_packages(env_id)
    for package, (_, ids) in _PROVIDERS.items():
        if ids.match(env_id) or (package == "ale_py" and not missing(package)):  # Pong-v4 does not match
            with without_warnings():
                importlib.import_module(package)


_EXTRAS = {
    "mujoco": ("gymnasium.envs.mujoco", ("mujoco", "imageio", "packaging")),
    "box2d": ("gymnasium.envs.box2d", ("Box2D", "pygame")),
    "classic": ("gymnasium.envs.classic_control", ("pygame",)),
    "pybullet": ("pybullet_envs_gymnasium", ("pybullet",)),
}
"""The module of the environments that need each extra, and the packages that it installs."""


def check_packages(env_id: str) -> None:
    """Check that the packages are installed that steps of an environment need, as far as its id implies them.

    Raises:
        InputError: a package is missing; the message contains the command that installs it.
    """
    for package, (extra, ids) in _PROVIDERS.items():
        if ids.match(env_id):
            check_installed(f"environment {env_id}", extra, package)
    spec = gymnasium.registry.get(env_id)
    for extra in ("mujoco", "box2d"):
        place, packages = _EXTRAS[extra]
        if spec is not None and str(spec.entry_point).startswith(place):
            check_installed(f"environment {env_id}", extra, packages[0])


def lacking(spec: EnvSpec, problem: Exception) -> str:
    """Describe why an environment cannot be made: the missing packages and their extra, or the exception."""
    if "cv2" in str(problem):
        return f"needs cv2; {install('pixels')}"
    for extra, (place, packages) in _EXTRAS.items():
        if str(spec.entry_point).startswith(place) and (absent := missing(*packages)):
            return f"needs {' and '.join(absent)}; {install(extra)}"
    return f"cannot be made: {problem}"
