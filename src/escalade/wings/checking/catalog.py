"""Installed environments by family: those of Gymnasium, of third-party packages, and of EnvPool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium import spaces

from escalade.envs.environment import resolve
from escalade.envs.envpool.families import family_of
from escalade.envs.envpool.worlds import all_ids
from escalade.envs.providers import register_all
from escalade.envs.spaces import describe, is_image, observation_size
from escalade.errors import EnvironmentFailure, InputError

_NAMES = {"envpool.mujoco.dmc": "envpool.dm_control"}
_FAMILY = re.compile(r"gymnasium\.envs\.(\w+)|(\w+)")


@dataclass(frozen=True)
class Listed:
    """Facts about an installed environment."""

    env: str
    family: str
    observations: spaces.Space[Any] | None
    """None if the environment cannot be created."""
    actions: spaces.Space[Any] | None
    max_episode_steps: int | None
    problem: str = ""
    """Reason why it cannot be created, if any."""

    def as_dict(self) -> dict[str, Any]:
        """Return the facts as plain values."""
        plain = {name: getattr(self, name) for name in ("env", "family", "max_episode_steps", "problem")}
        inputs, outputs = self.observations, self.actions
        described = {"observation_space": inputs and describe(inputs)}
        return plain | described | {"action_space": outputs and describe(outputs)}


def families(word: str = "") -> dict[str, list[str]]:
    """Return environment ids by family, optionally filtered.

    A family is a subpackage of Gymnasium or EnvPool, or a third-party package. Ids in both Gymnasium and
    EnvPool are listed under Gymnasium.

    Args:
        word: part of an id or of a family, ignoring case.
    """
    register_all()
    found: dict[str, list[str]] = {}
    for env_id, spec in gymnasium.registry.items():
        entry = spec.entry_point
        module = entry if isinstance(entry, str) else getattr(entry, "__module__", "")
        inside = _FAMILY.match(module)
        named = "" if inside is None else inside[1] or inside[2]
        found.setdefault(f"gymnasium.{named}" if inside and inside[1] else named, []).append(env_id)
    for env_id in all_ids():
        if env_id not in gymnasium.registry:
            family = family_of(env_id)
            found.setdefault(_NAMES.get(family, family.replace(".mujoco.", ".")), []).append(env_id)
    word = word.lower()
    kept = {name: [one for one in ids if word in f"{name} {one}".lower()] for name, ids in found.items()}
    return {name: ids for name, ids in kept.items() if ids}


def listed(word: str) -> Iterator[Listed]:
    """Yield the environments that match a word. Each one is created to read its spaces."""
    for family, ids in families(word).items():
        for env_id in ids:
            try:
                found = resolve(env_id)
            except (InputError, EnvironmentFailure) as problem:
                yield Listed(env_id, family, None, None, None, str(problem))
                continue
            limit = found.max_episode_steps
            yield Listed(env_id, family, found.observation_space, found.action_space, limit)


def brief(space: spaces.Space[Any]) -> str:
    """Return a brief description of a space: ``17 numbers``, ``image of 4 x 84 x 84``, ``one of 18``."""
    match space:
        case spaces.Box() if is_image(space):
            return f"image of {' x '.join(map(str, space.shape))}"
        case spaces.Discrete():
            return f"one of {space.n}"
        case spaces.MultiDiscrete():
            return f"choices of {' x '.join(map(str, space.nvec.reshape(-1).tolist()))}"
    return f"{observation_size(space)} numbers"
