"""Wrappers that Escalade adds to environments by itself."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from escalade.envs.process import quiet
from escalade.envs.wrapping import info_number, one_number

Env = gymnasium.Env[Any, Any]

_PACKAGE = "pybullet_envs_gymnasium."
_WALKERS = ("alive", "progress", "electricity_cost", "joints_at_limit_cost", "feet_collision_cost")


def is_bullet(spec: EnvSpec) -> bool:
    """Return True if the environment is from pybullet-envs-gymnasium."""
    return str(spec.entry_point).startswith(_PACKAGE)


class Bullet(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Suppresses the console output that PyBullet's C code prints at the first reset of each object.

    Adds the terms of a walker's reward to its ``info``, such as ``progress``: the decrease of the distance to
    its goal in a step, divided by the duration of the step.
    """

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        with quiet():
            return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        parts = getattr(self.env.unwrapped, "rewards", ())
        if len(parts) == len(_WALKERS):
            info = info | {name: float(part) for name, part in zip(_WALKERS, parts, strict=True)}
        return observation, reward, terminated, truncated, info


class EarlyEnd(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Truncates an episode after consecutive steps of negative reward, in training and evaluation.

    Not available as ``--wrap``, because it has to be outside of all wrappers and of frame processing to count
    the policy's steps.

    Args:
        env: the environment.
        after: the number of such steps, or a pair: this number, and the number of an episode's first steps
            that do not count.
        reward_info: entry of a step's info that is used instead of the reward.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], after: int | tuple[int, ...], reward_info: str | None = None
    ) -> None:
        super().__init__(env)
        self._most, self._first = (after, 0) if isinstance(after, int) else (*after, 0)[:2]
        self._reward_info = reward_info

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._step = self._negative = 0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._step += 1
        judged = reward if self._reward_info is None else info_number(info, self._reward_info)
        counted = self._step > self._first and one_number(judged) < 0
        self._negative = self._negative + 1 if counted else 0
        early = self._negative >= self._most
        return observation, reward, terminated, early or truncated, info
