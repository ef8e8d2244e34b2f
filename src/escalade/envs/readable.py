"""The parts of a Dict or Tuple observation that a policy reads: all but text, or the one image among them."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
from gymnasium import spaces

from escalade.envs.spaces import SMALL_IMAGE, UnsupportedSpace, is_image, parts_of, short

Env = gymnasium.Env[Any, Any]


class Readable(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Keeps some parts of a Dict or Tuple: an image that is alone as it is, others in a Dict."""

    def __init__(self, env: Env, kept: dict[Any, spaces.Space[Any]], left_out: tuple[str, ...]) -> None:
        super().__init__(env)
        self._kept, self.left_out = list(kept), left_out
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


def check_images(space: spaces.Space[Any]) -> None:
    """Refuse a Dict or Tuple with a large image: networks take one image, or one vector.

    Raises:
        UnsupportedSpace: names the image and the wrappers that choose what a policy reads.
    """
    parts = parts_of(space) if isinstance(space, spaces.Dict | spaces.Tuple) else []
    for key, part in parts:
        if (size := _largest_image(part)) > SMALL_IMAGE:
            rest = [other for other, _ in parts if other != key]
            others = f', or the others, with "gymnasium.wrappers:FilterObservation({rest})"' if rest else ""
            raise UnsupportedSpace(
                f"observation space {short(space)} has an image of {size:,} numbers beside other parts, "
                f"and at most {SMALL_IMAGE:,} are flattened: choose what the policy reads, as with "
                f'`wrappers` "gymnasium.wrappers:FilterObservation({[key]})"{others}'
            )


def _largest_image(space: spaces.Space[Any]) -> int:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return max((_largest_image(part) for _, part in parts_of(space)), default=0)
    return math.prod(space.shape or ()) if is_image(space) else 0


def text_parts(env: Env) -> tuple[str, ...]:
    """Return the names of the text parts that :func:`readable` left out of the environment's observations."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, Readable):
            return env.left_out
        env = env.env
    return ()
