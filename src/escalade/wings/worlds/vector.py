"""Worlds that Gymnasium registers with a ``vector_entry_point``."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from torch import Tensor


def make(env_id: str, num_envs: int, device: str, **kwargs: Any) -> Any:
    """Create ``gymnasium.make_vec`` of this id. Its arrays are on the CPU."""
    made = gymnasium.make_vec(env_id, num_envs, vectorization_mode="vector_entry_point", **kwargs)
    return Arrays(made)


class Arrays:
    """A vector environment whose actions are arrays of numpy."""

    row_seeds = False

    def __init__(self, made: Any) -> None:
        self._made = made
        self.num_envs = made.num_envs
        self.single_observation_space = made.single_observation_space
        self.single_action_space = made.single_action_space
        spec = made.spec
        self.max_episode_steps = None if spec is None else spec.max_episode_steps

    def reset(self, *, seed: int) -> Any:
        """Begin all episodes."""
        return self._made.reset(seed=seed)

    def step(self, actions: Tensor) -> Any:
        """Advance all episodes by one step."""
        return self._made.step(np.asarray(actions.cpu()))

    def close(self) -> None:
        """Close the environment."""
        self._made.close()
