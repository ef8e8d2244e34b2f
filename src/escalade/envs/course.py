"""Rules of an episode's beginning and end beside the environment's own: burn-in steps and early ends."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from escalade.envs.wrapping import info_number
from escalade.errors import InputError

Env = gymnasium.Env[Any, Any]


@dataclass(frozen=True)
class Course:
    """The options of an episode's beginning and end. They hold in training, evaluation and films alike."""

    burn_in: int = 0
    """Steps at the start of an episode that are taken with ``burn_in_action``, before the policy acts."""
    burn_in_action: tuple[float, ...] = ()
    """One number for each dimension of the action, or the number of a discrete one; zeros when empty."""
    early_end: int | None = None
    """An episode ends after this many steps of negative reward in a row."""
    early_end_from: int = 0
    """Steps of the policy before any is counted."""

    def wrap(self, env: Env, reward_info: str | None = None) -> Env:
        """The environment with what is asked for.

        Args:
            env: the environment.
            reward_info: the entry of a step's info that training takes for the reward, and early ends too.

        Raises:
            InputError: the burn-in action is not one of the environment's.
        """
        if self.burn_in:
            env = BurnIn(env, self.burn_in, self._action(env.action_space))
        if self.early_end is not None:
            env = EarlyEnd(env, self.early_end, self.early_end_from, reward_info)
        return env

    def _action(self, space: spaces.Space[Any]) -> Any:
        given = self.burn_in_action
        if isinstance(space, spaces.Discrete):
            action: Any = int(given[0]) if given else int(space.start)
            fits = len(given) <= 1 and (not given or given[0] == action)
        elif isinstance(space, spaces.Box):
            size = int(np.prod(space.shape))
            fits = len(given) in (0, size)
            numbers = np.array(given or [0.0] * size) if fits else np.zeros(size)
            action = numbers.reshape(space.shape).astype(space.dtype)
        else:
            raise InputError(f"`burn_in` needs a Box or Discrete action space, not {type(space).__name__}")
        if not fits or not space.contains(action):
            shown = ",".join(f"{number:g}" for number in given) or "0"
            raise InputError(f"`burn_in_action` {shown} is not in {space}: give one number a dimension")
        return action


COURSE = tuple(option.name for option in fields(Course))
"""The names of the options."""


class BurnIn(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Takes the first ``steps`` of every episode with one fixed action; their rewards are dropped.

    An episode that ends meanwhile begins again, and its burn-in is over.
    """

    def __init__(self, env: Env, steps: int, action: Any) -> None:
        super().__init__(env)
        self._steps = steps
        self._action = action

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        for _ in range(self._steps):
            action = self._action.copy() if isinstance(self._action, np.ndarray) else self._action
            observation, _, terminated, truncated, info = self.env.step(action)
            if terminated or truncated:
                return self.env.reset(seed=_another(seed), options=options)
        return observation, info


def _another(seed: int | None) -> int | None:
    """A seed for the episode's second beginning, a function of its first one's; in [0, 2**31)."""
    return None if seed is None else int(np.random.SeedSequence(seed).generate_state(1)[0] >> 1)


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
