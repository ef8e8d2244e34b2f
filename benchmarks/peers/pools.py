"""EnvPool's environments as single Gymnasium environments, reused between episodes."""

from __future__ import annotations

from typing import Any

from gymnasium.wrappers import FlattenObservation

from escalade.envs.envpool.object import PooledEnv
from escalade.envs.envpool.worlds import one_of
from escalade.support.own_process import claim

claim()  # of EnvPool's families, only the one that is needed is imported


class KeptWorld(PooledEnv):
    """Environment whose pool is created once, with the first seed; later resets continue its randomness."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        if self._pool is None:
            return super().reset(seed=seed, options=options)
        self._steps = 0
        return one_of(self.observation_space, self._pool.reset()[0]), {}


def flat(env_id: str) -> Any:
    """One environment whose observations are vectors."""
    return FlattenObservation(KeptWorld(env_id))
