"""Images with their channels first, as networks take them, or last, as image libraries do."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces, wrappers

from escalade.envs.spaces import is_image

Env = gymnasium.Env[Any, Any]


def channels_first(env: Env) -> Env:
    """The environment with images as (C, H, W): its own, unless they have their channels last."""
    space = env.observation_space
    return moved_first(env) if is_image(space) and _are_last(space) else env


def moved_first(env: Env) -> Env:
    """The environment, whose images are (H, W, C), with images as (C, H, W)."""
    return _moved(env, -1, 0)


def channels_last(env: Env) -> Env:
    """The environment with images as (H, W, C): its own, unless they have their channels first."""
    space = env.observation_space
    return _moved(env, 0, -1) if is_image(space) and not _are_last(space) else env


def _are_last(space: spaces.Space[Any]) -> bool:
    """Tell whether an image's channels are last: they are its smallest dimension, the first of equal ones."""
    assert space.shape is not None
    return space.shape[2] < min(space.shape[:2])


def _moved(env: Env, source: int, target: int) -> Env:
    """The environment with the axis ``source`` of its images at ``target``; the arrays are contiguous."""
    space = env.observation_space
    assert isinstance(space, spaces.Box)
    low, high = (np.moveaxis(bound, source, target) for bound in (space.low, space.high))
    moved = spaces.Box(low, high, dtype=space.dtype.type)
    return wrappers.TransformObservation(
        env, lambda image: np.ascontiguousarray(np.moveaxis(image, source, target)), moved
    )
