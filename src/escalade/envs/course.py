"""How an episode ends beside what the environment says: early ends."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import gymnasium

from escalade.envs.wrapping import info_number

Env = gymnasium.Env[Any, Any]


@dataclass(frozen=True)
class Course:
    """The options of an episode's end. They hold in training, evaluation and films alike.

    They are no wrapper to be named, for they count the policy's steps, outside of skipped frames, and hold on
    EnvPool's images too.
    """

    early_end: int | None = None
    """An episode ends after this many steps of negative reward in a row."""
    early_end_from: int = 0
    """Steps of the policy before any is counted."""

    def wrap(self, env: Env, reward_info: str | None = None) -> Env:
        """The environment with what is asked for.

        Args:
            env: the environment.
            reward_info: the entry of a step's info that training takes for the reward, and early ends too.
        """
        if self.early_end is None:
            return env
        return EarlyEnd(env, self.early_end, self.early_end_from, reward_info)


COURSE = tuple(option.name for option in fields(Course))
"""The names of the options."""


class EarlyEnd(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Truncates an episode after ``most`` steps of negative reward in a row, but not the ``first`` ones."""

    def __init__(self, env: Env, most: int, first: int, reward_info: str | None = None) -> None:
        super().__init__(env)
        self._most = most
        self._first = first
        self._reward_info = reward_info

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._step = self._negative = 0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._step += 1
        judged = reward if self._reward_info is None else info_number(info, self._reward_info)
        counted = self._step > self._first and float(judged) < 0
        self._negative = self._negative + 1 if counted else 0
        return observation, reward, terminated, truncated or self._negative >= self._most, info
