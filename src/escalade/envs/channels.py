"""Images with their channels first, as networks take them."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escalade.envs.spaces import is_image


class ChannelsFirst(gymnasium.ObservationWrapper[NDArray[Any], Any, NDArray[Any]]):
    """Images of (H, W, C) as (C, H, W); the arrays are new and contiguous."""

    def __init__(self, env: gymnasium.Env[NDArray[Any], Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, spaces.Box)
        low, high = (np.moveaxis(bound, -1, 0) for bound in (space.low, space.high))
        self.observation_space = spaces.Box(low, high, dtype=space.dtype.type)

    def observation(self, observation: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(np.moveaxis(observation, -1, 0))


def channels_last(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """The environment with images as (H, W, C): its own, unless they have their channels first."""
    space = env.observation_space
    if not isinstance(space, spaces.Box) or not is_image(space) or _are_last(space):
        return env
    low, high = (np.moveaxis(bound, 0, -1) for bound in (space.low, space.high))
    turned = spaces.Box(low, high, dtype=space.dtype.type)
    return gymnasium.wrappers.TransformObservation(
        env, lambda image: np.ascontiguousarray(np.moveaxis(image, 0, -1)), turned
    )


def channels_first(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """The environment with images as (C, H, W): its own, unless they have their channels last."""
    space = env.observation_space
    return ChannelsFirst(env) if is_image(space) and _are_last(space) else env


def _are_last(space: spaces.Space[Any]) -> bool:
    """Tell where an image's channels are: its smallest dimension, the first of equal ones."""
    assert space.shape is not None
    return space.shape[2] < min(space.shape[:2])
