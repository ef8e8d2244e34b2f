"""EnvPool's environments of images as Gymnasium's objects, for wrappers of frames to stand around."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from escalade.envs.envpool_families import import_for, make_pool
from escalade.envs.quiet import quiet

_SEEDS = 2**31  # EnvPool takes a seed as a C int


class PooledEnv(gymnasium.Env[NDArray[Any], Any]):
    """One environment of EnvPool. Each episode gets a new pool, as a pool's seed is fixed when it is made.

    Args:
        env_id: an id of EnvPool.
        max_episode_steps: cut episodes after this many of the environment's own steps; None: its own limit.
    """

    def __init__(self, env_id: str, max_episode_steps: int | None) -> None:
        self._id, self._limit = env_id, max_episode_steps
        with quiet():
            spec = import_for(env_id).make_spec(env_id)
            self.observation_space = spec.gymnasium_observation_space
            self.action_space = spec.gymnasium_action_space
        self._pool: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """A new pool of one environment; without a seed, one is drawn."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(_SEEDS)) if seed is None else seed % _SEEDS
        self._pool = make_pool(self._id, [drawn], self._limit)
        return self._pool.reset()[0][0], {}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """One step; the info is left out."""
        observations, rewards, terminated, truncated, _ = self._pool.step(np.asarray(action)[None])
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), {}

    def close(self) -> None:
        """Free the pool."""
        self._pool = None
