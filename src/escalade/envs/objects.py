"""Wrappers that Escalade itself puts around an environment's object."""

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
    """Return whether the environment is one of pybullet-envs-gymnasium."""
    return str(spec.entry_point).startswith(_PACKAGE)


class Bullet(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps what PyBullet prints at the first reset from the console, which C code does for each object.

    A walker's ``info`` holds the parts that its reward is the sum of, among them the ``progress``: what it
    came nearer to its far goal in a step, divided by the step's time.
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
    """Truncates an episode after steps of negative reward in a row, in training and evaluation alike.

    It is no wrapper for ``--wrap``: it stands around all others and around the frames, so that it counts the
    policy's steps.

    Args:
        env: the environment.
        after: the number of such steps; or that, and how many of an episode's first steps do not count.
        reward_info: the entry of a step's info that training takes for the reward; it is judged then.
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
