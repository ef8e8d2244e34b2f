"""The parts of a Dict or Tuple observation that a policy reads: all but text, or the one image among them."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
from gymnasium import spaces

from escalade.envs.spaces import SMALL_IMAGE, UnsupportedSpace, is_image, parts_of, short

Env = gymnasium.Env[Any, Any]


class Readable(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Leaves text out of observations, and takes an image out of a Dict or Tuple of nothing else."""

    def __init__(self, env: Env, space: spaces.Space[Any], left_out: list[str]) -> None:
        super().__init__(env)
        self._space, self._path, self.left_out = space, list[Any](), tuple(left_out)
        while isinstance(space, spaces.Dict | spaces.Tuple) and len(space) == 1:
            ((key, space),) = parts_of(space)
            self._path.append(key)
        self._path = self._path if is_image(space) else []
        self.observation_space = space if self._path else self._space

    def observation(self, observation: Any) -> Any:
        """Return the observation as the policy reads it."""
        for key in self._path:
            observation = observation[key]
        return observation if self._path else _kept(self._space, observation)


def readable(env: Env) -> Env:
    """Return the environment with observations that a policy can read: itself if they are so already."""
    left_out: list[str] = []
    space = _without_text(env.observation_space, "", left_out)
    if space is None:  # text alone, which is refused as a space that is not supported
        return env
    made = Readable(env, space, left_out)
    return env if made.observation_space is env.observation_space else made


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


def _without_text(space: spaces.Space[Any], name: str, left_out: list[str]) -> spaces.Space[Any] | None:
    """Return the space without its text, or None if it holds nothing else.

    A Tuple with text becomes a Dict of the places of its other parts, which then keep their names.
    """
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        if space.dtype is None or space.dtype.kind != "U":  # MiniGrid has a class of its own for text
            return space
        left_out.append(name)
        return None
    before, kept = len(left_out), []
    for key, part in parts_of(space):
        inner = _without_text(part, f"{name}.{key}" if name else str(key), left_out)
        if inner is not None:
            kept.append((key, inner))
    if len(left_out) == before:
        return space
    return spaces.Dict(kept) if kept else None


def _kept(space: spaces.Space[Any], observation: Any) -> Any:
    """Return the parts of an observation that are in ``space``."""
    if isinstance(space, spaces.Dict):
        return {key: _kept(part, observation[key]) for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_kept(part, observation[place]) for place, part in enumerate(space))
    return observation
