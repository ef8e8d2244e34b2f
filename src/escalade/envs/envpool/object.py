"""One environment of EnvPool's as a Gymnasium object, for wrappers, films and checks."""

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

_SEEDS = 2**31  # EnvPool takes a seed as a C int


class PooledEnv(gymnasium.Env[Any, Any]):
    """One environment of EnvPool. Each episode gets a new pool, as a pool's seed is fixed when it is made.

    Args:
        env_id: an id of EnvPool.
        max_episode_steps: cut episodes after this many of the environment's own steps; None: its own limit.
        kwargs: arguments of EnvPool's for it.
        render_mode: ``rgb_array`` where it is to draw.

    Raises:
        InputError: it is for several players.
        TypeError: it does not take these arguments.
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
        with quiet():  # the bounds of some spaces warn when they are read
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
        """A new pool of one environment; without a seed, one is drawn."""
        super().reset(seed=seed)
        self._steps = 0
        drawn = int(self.np_random.integers(_SEEDS)) if seed is None else seed % _SEEDS
        self._pool = make_pool(self._id, [drawn], self._limit, **self.settings)
        self._pool._gym_observation_space = self._read  # which EnvPool would make again, and warn
        return one_of(self.observation_space, self._pool.reset()[0]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step; the info has the numbers that EnvPool gives, one each."""
        observations, rewards, terminated, truncated, info = self._pool.step(np.asarray(action)[None])
        numbers = {key: info[key][0] for key in self.infos if key in info}
        self._steps += 1
        late = self._steps == self._limit  # some of EnvPool's count one step more
        seen = one_of(self.observation_space, observations)
        return seen, float(rewards[0]), bool(terminated[0]), bool(truncated[0] or late), numbers

    def render(self) -> Any:
        """One frame, shape (height, width, 3)."""
        return self._pool.render()[0]

    def close(self) -> None:
        """Free the pool."""
        self._pool = None


def info_arrays(spec: Any) -> dict[str, str]:
    """The numbers of a step's info that EnvPool gives, one an environment: its name of each."""
    arrays = spec.state_array_spec
    # -1 stands for its players, of which there is one. Which slot an episode ran in is no fact of it.
    named = {name.removeprefix("info:"): name for name in arrays if name.startswith("info:")}
    return {
        key: name
        for key, name in named.items()
        if key != "env_id" and not key.startswith("players.") and list(arrays[name].shape) in ([], [-1])
    }


def infos_of(env_id: str) -> dict[str, str]:
    """The same, by id."""
    return info_arrays(import_for(env_id).make_spec(env_id))
