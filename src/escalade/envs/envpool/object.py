"""One environment of EnvPool as a Gymnasium object, for wrappers, videos and checks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np

from escalade.envs.envpool.drawing import check_drawing, open_context
from escalade.envs.envpool.families import DRAWING, import_for, make_pool
from escalade.envs.envpool.worlds import (
    WorldSpec,
    action_space,
    observation_space,
    one_of,
    read_spec,
    settings,
    step_limit,
)
from escalade.envs.process import quiet

_SEEDS = 2**31  # a seed of EnvPool is a C int


class PooledEnv(gymnasium.Env[Any, Any]):
    """One environment of EnvPool.

    Each episode has a new pool, because seeds are set when a pool is made.

    Args:
        env_id: id of EnvPool.
        max_episode_steps: truncate episodes after this many steps of the environment. Defaults to its own
            limit.
        kwargs: arguments of EnvPool for it.
        render_mode: ``rgb_array`` to render, or None.

    Raises:
        InputError: it has several players.
        TypeError: it does not accept these arguments.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - Gymnasium declares it so

    def __init__(
        self,
        env_id: str,
        max_episode_steps: int | None = None,
        kwargs: dict[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._id, self.settings = env_id, settings(env_id, kwargs or {})
        with quiet():  # reading the bounds of some spaces prints warnings
            spec = read_spec(env_id, self.settings)
            self._read = spec.gymnasium_observation_space
            self.observation_space, self.action_space = observation_space(spec), action_space(spec)
        self.spec = replace(WorldSpec(env_id, __name__), max_episode_steps=step_limit(spec))
        self.infos = info_arrays(spec)
        self._limit = max_episode_steps or self.spec.max_episode_steps
        self.render_mode = render_mode
        if render_mode is not None:
            self.settings["render_mode"] = render_mode
        if DRAWING & self.settings.keys():
            check_drawing(env_id, self.settings)
            self._context = open_context(env_id)
        self._pool: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Make a new pool of one environment. Without a seed, a random one is used."""
        super().reset(seed=seed)
        self._steps = 0
        drawn = int(self.np_random.integers(_SEEDS)) if seed is None else seed % _SEEDS
        self._pool = make_pool(self._id, [drawn], self._limit, **self.settings)
        self._pool._gym_observation_space = self._read  # otherwise EnvPool makes it again and prints warnings
        return one_of(self.observation_space, self._pool.reset()[0]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step. The info has EnvPool's scalar entries."""
        observations, rewards, terminated, truncated, info = self._pool.step(np.asarray(action)[None])
        numbers = {key: info[key][0] for key in self.infos if key in info}
        self._steps += 1
        late = self._steps == self._limit  # some of EnvPool's environments end one step later
        seen = one_of(self.observation_space, observations)
        return seen, float(rewards[0]), bool(terminated[0]), bool(truncated[0] or late), numbers

    def render(self) -> Any:
        """Return one frame, shape (height, width, 3)."""
        return self._pool.render()[0]

    def close(self) -> None:
        """Free the pool."""
        self._pool = None


def info_arrays(spec: Any) -> dict[str, str]:
    """Return the scalar entries of a step's info, with EnvPool's name of each."""
    arrays = spec.state_array_spec
    # A dimension of -1 is for players, of which there is one. env_id is the slot, so it is left out.
    named = {name.removeprefix("info:"): name for name in arrays if name.startswith("info:")}
    return {
        key: name
        for key, name in named.items()
        if key != "env_id" and not key.startswith("players.") and list(arrays[name].shape) in ([], [-1])
    }


def infos_of(env_id: str) -> dict[str, str]:
    """Return :func:`info_arrays` of an id."""
    return info_arrays(import_for(env_id).make_spec(env_id))
