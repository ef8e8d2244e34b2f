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


def channels_first(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """The environment with images as (C, H, W): its own, unless they have their channels last.

    The channels of an image are its smallest dimension, the first of equal ones.
    """
    space = env.observation_space
    if is_image(space) and space.shape is not None and space.shape[2] < min(space.shape[:2]):
        return ChannelsFirst(env)
    return env
