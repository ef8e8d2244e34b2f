"""Policies that come with the package, by names such as ``zoo:CartPole-v1``.

Each is a run folder of policy, config and summary alone, without checkpoints.
"""

from __future__ import annotations

import os
from pathlib import Path

from escalade.errors import InputError, nearest
from escalade.storage.files import AnyPath, path_of

ZOO = Path(__file__).parents[1] / "zoo"
"""The folder that holds them."""
PREFIX = "zoo:"


def names() -> list[str]:
    """The names of the policies, without the prefix, sorted."""
    return sorted(config.parent.name for config in ZOO.glob("*/config.toml"))


def located(path: AnyPath) -> Path:
    """The path; of ``zoo:NAME`` that of the policy's folder.

    Raises:
        InputError: it is no path, or there is no policy of that name.
    """
    found = path_of(path)
    text = os.fspath(path)
    if not text.startswith(PREFIX):
        return found
    name = text.removeprefix(PREFIX)
    if name not in names():
        close = nearest(text, (PREFIX + known for known in names()))
        raise InputError(f"there is no policy {text}{close} ('escalade zoo' lists them)")
    return ZOO / name
