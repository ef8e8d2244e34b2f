"""The environments that are installed, by family: those of Gymnasium, of packages for it, and of EnvPool."""

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
    """An environment of the list."""

    env: str
    family: str
    observations: spaces.Space[Any] | None
    """None where it cannot be made."""
    actions: spaces.Space[Any] | None
    max_episode_steps: int | None
    problem: str = ""
    """The reason why it cannot be made."""

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        plain = {name: getattr(self, name) for name in ("env", "family", "max_episode_steps", "problem")}
        seen, done = self.observations, self.actions
        read = {"observation_space": seen and describe(seen), "action_space": done and describe(done)}
        return plain | read


def families(word: str = "") -> dict[str, list[str]]:
    """Ids by family; with a word, those that have it in their id or their family, in any case.

    A family is a package of Gymnasium's environments, of another package for Gymnasium, or of EnvPool; an id
    of Gymnasium's that EnvPool has too stands in Gymnasium's.
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
    """The environments with this word, one after the other: to know its spaces, each is made."""
    for family, ids in families(word).items():
        for env_id in ids:
            try:
                found = resolve(env_id)
            except (InputError, EnvironmentFailure) as problem:
                yield Listed(env_id, family, None, None, None, str(problem))
                continue
            seen, done, limit = found.observation_space, found.action_space, found.max_episode_steps
            yield Listed(env_id, family, seen, done, limit)


def said(space: spaces.Space[Any]) -> str:
    """A space in a few words: ``17 numbers``, ``image of 4 x 84 x 84``, ``one of 18``."""
    match space:
        case spaces.Box() if is_image(space):
            return f"image of {' x '.join(map(str, space.shape))}"
        case spaces.Discrete():
            return f"one of {space.n}"
        case spaces.MultiDiscrete():
            return f"choices of {' x '.join(map(str, space.nvec.reshape(-1).tolist()))}"
    return f"{observation_size(space)} numbers"
