"""Constants of Atari games, and wrappers for frames and actions."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces, wrappers
from gymnasium.envs.registration import EnvSpec

from escalade.envs.spaces import is_image
from escalade.envs.wrapping import one_number

Env = gymnasium.Env[Any, Any]

_ENTRY_POINT = "ale_py.env:AtariEnv"
STICKINESS = 0.25
"""Default probability with which the emulator repeats the last action."""
NOOP, FIRE = 0, 1
"""Their numbers in every action set. Not all action sets contain FIRE."""


def is_atari(spec: EnvSpec) -> bool:
    """Return True if the environment is a game of the Arcade Learning Environment."""
    return spec.entry_point == _ENTRY_POINT


def has_fire(game: Any) -> bool:
    """Return True if the game's action set contains FIRE."""
    return "FIRE" in game.get_action_meanings()[FIRE : FIRE + 1]


def frame_limit(spec: EnvSpec) -> int | None:
    """Return the steps after which the emulator truncates a game, or None. The emulator counts frames."""
    frames, skip = (spec.kwargs.get(name) for name in ("max_num_frames_per_episode", "frameskip"))
    if not is_atari(spec) or frames is None or skip is None:
        return None
    least: int = skip if isinstance(skip, int) else min(skip)
    return math.ceil(int(frames) / least)


class Owned(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Copies every observation and every action.

    An environment may return the same array in every step and may write to an action. Wrappers that stack
    observations or repeat an action use both for longer than a step.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        observation, info = self.env.reset(seed=seed, options=options)
        return copy.deepcopy(observation), info

    def step(self, action: Any) -> Any:
        observation, *rest = self.env.step(copy.deepcopy(action))
        return copy.deepcopy(observation), *rest


_BLIND = (wrappers.TimeLimit, wrappers.OrderEnforcing, Owned)


def _drawn_apart(env: Env) -> Any:
    """Return Gymnasium's CarRacing inside ``env``, whose drawing does not change the world, or None.

    None also if a different wrapper, which may use the images, is in between, or if a window is open.
    """
    inner = env
    while isinstance(inner, _BLIND):
        inner = inner.env
    known = type(inner).__module__ == "gymnasium.envs.box2d.car_racing"
    return inner if known and inner.render_mode != "human" else None


@contextmanager
def _undrawn(car: Any) -> Iterator[None]:
    """Skip drawing in the block; steps return the previous image."""
    car._render = lambda mode: car.state
    try:
        yield
    finally:
        del car._render  # uncovers the method of the class


class FrameSkip(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Repeats each action for ``skip`` steps, sums the rewards, and returns the last observation.

    Skipped observations are not drawn if drawing has no side effects. With ``pool``, the observation is the
    maximum of the last two, or the only one (Mnih et al. 2015). Gymnasium's MaxAndSkipObservation instead
    pools with an observation of an earlier step, or even an earlier episode, if an episode ends early.
    """

    def __init__(self, env: Env, skip: int, pool: bool = False) -> None:
        super().__init__(env)
        self._skip, self._pool = skip, pool
        self._car: Any = None if pool else _drawn_apart(env)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        total, latest = 0.0, list[Any]()
        for left in reversed(range(self._skip)):
            unseen = left > 0 and self._car is not None
            with _undrawn(self._car) if unseen else nullcontext():
                observation, reward, terminated, truncated, info = self.env.step(action)
            total += one_number(reward)
            ended = terminated or truncated
            if ended and unseen:  # the last image was not drawn
                observation = self._car._render("state_pixels")
            latest = [*latest[-1:], observation]
            if ended:
                break
        return np.max(latest, axis=0) if self._pool else observation, total, terminated, truncated, info


def channels_first(env: Env) -> Env:
    """Return the environment with images as (C, H, W), unchanged if they are already."""
    space = env.observation_space
    return moved_first(env) if is_image(space) and _are_last(space) else env


def moved_first(env: Env) -> Env:
    """Return the environment, whose images are (H, W, C), with images as (C, H, W)."""
    return _moved(env, -1, 0)


def channels_last(env: Env) -> Env:
    """Return the environment with images as (H, W, C), unchanged if they are already."""
    space = env.observation_space
    return _moved(env, 0, -1) if is_image(space) and not _are_last(space) else env


def grayscale(env: Env) -> Env:
    """Return the environment, whose images are (H, W, 3), with images as (H, W).

    The values are those of Gymnasium's GrayscaleObservation, whose sum over three channels is slow.
    """
    height, width, _ = env.observation_space.shape or ()
    red, green, blue = 0.2125, 0.7154, 0.0721

    def gray(image: Any) -> Any:
        return (image[..., 0] * red + image[..., 1] * green + image[..., 2] * blue).astype(np.uint8)

    return wrappers.TransformObservation(env, gray, spaces.Box(0, 255, (height, width), np.uint8))


def _are_last(space: spaces.Space[Any]) -> bool:
    """Return True if channels are last. They are the smallest dimension, the first of equal ones."""
    assert space.shape is not None
    return space.shape[2] < min(space.shape[:2])


def _moved(env: Env, source: int, target: int) -> Env:
    """Return the environment with the axis ``source`` of its images moved to ``target``, contiguous."""
    space = env.observation_space
    assert isinstance(space, spaces.Box)
    low, high = (np.moveaxis(bound, source, target) for bound in (space.low, space.high))
    moved = spaces.Box(low, high, dtype=space.dtype.type)
    return wrappers.TransformObservation(
        env, lambda image: np.ascontiguousarray(np.moveaxis(image, source, target)), moved
    )


def as_image(env: Env) -> Env:
    """Return the environment with gray images of (H, W) as (1, H, W)."""
    shape = env.observation_space.shape
    if shape is None or len(shape) != 2:
        return env
    return wrappers.ReshapeObservation(env, (1, *shape))
