"""The parts of a Dict or Tuple observation that a policy reads: all but text, or the one image among them."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium import spaces

from escalade.envs.spaces import is_image, parts_of

Env = gymnasium.Env[Any, Any]


class Readable(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Keeps some parts of a Dict or Tuple: an image that is alone as it is, others in a Dict."""

    def __init__(self, env: Env, kept: dict[Any, spaces.Space[Any]], left_out: tuple[str, ...]) -> None:
        super().__init__(env)
        self._kept, self.text_parts = list(kept), left_out
        first, *others = kept.values()
        self._is_image = is_image(first) and not others
        self.observation_space = first if self._is_image else spaces.Dict([*kept.items()])

    def observation(self, observation: Any) -> Any:
        """Return the observation as the policy reads it."""
        if self._is_image:
            return observation[self._kept[0]]
        return {key: observation[key] for key in self._kept}


def readable(env: Env) -> Env:
    """Return the environment with observations that a policy can read: itself if they are so already.

    A Tuple with text becomes a Dict of the places of its other parts, which then keep their names.
    """
    space = env.observation_space
    parts = parts_of(space) if isinstance(space, spaces.Dict | spaces.Tuple) else []
    # MiniGrid has a class of its own for text.
    kept = {key: part for key, part in parts if part.dtype is None or part.dtype.kind != "U"}
    left_out = tuple(str(key) for key, _ in parts if key not in kept)
    if kept and (left_out or (len(kept) == 1 and is_image(*kept.values()))):
        return Readable(env, kept, left_out)
    return env
