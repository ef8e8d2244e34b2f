"""Escalade's own wrappers for ``--wrap``: how episodes of some environments begin and end.

Each is pure: an episode is a function of its seed and actions, whatever ran in the same object before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from escalade.envs.pixels.wrappers import FIRE, has_fire

Env = gymnasium.Env[Any, Any]


class _FirstSteps(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Takes steps with one action after every reset; an episode that ends meanwhile begins again."""

    def __init__(self, env: Env, steps: int, action: Any) -> None:
        super().__init__(env)
        self._steps, self._action = steps, action

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        for _ in range(self._steps):
            action = self._action.copy() if isinstance(self._action, np.ndarray) else self._action
            observation, _, terminated, truncated, info = self.env.step(action)
            if terminated or truncated:
                return self.env.reset(seed=_another(seed), options=options)
        return observation, info


class BurnIn(_FirstSteps):
    """Take the first steps of every episode with one fixed action; their rewards are dropped.

    An episode that ends meanwhile begins again, with a seed derived from its own, and its burn-in is over.

    Args:
        env: the environment, with Box or Discrete actions.
        steps: how many steps of ``env``, at least 1.
        action: one number a dimension, or the number of a discrete action; zeros, or the first one, when not
            given.

    Raises:
        ValueError: ``steps`` is no such number, or the action is not one of the environment's.
    """

    def __init__(self, env: Env, steps: int, action: float | Sequence[float] | None = None) -> None:
        if not isinstance(steps, int) or steps < 1:
            raise ValueError(f"steps {steps!r} must be a whole number of at least 1")
        super().__init__(env, steps, _action(env.action_space, action))


class FireOnReset(_FirstSteps):
    """Press FIRE once after a reset, in Atari games that have it and wait for it.

    Raises:
        ValueError: the environment is no Atari game.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env, steps=int(has_fire(_game(env))), action=FIRE)


class LifeLossEnds(gymnasium.Wrapper[Any, Any, Any, Any]):
    """End an episode of an Atari game when a life is lost.

    Raises:
        ValueError: the environment is no Atari game.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        _game(env)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._lives = int(info["lives"])
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        lives = int(info["lives"])
        lost, self._lives = lives < self._lives, lives
        return observation, reward, terminated or lost, truncated, info


def _action(space: spaces.Space[Any], given: float | Sequence[float] | None) -> Any:
    """The action ``given`` as the space has it."""
    action: Any = getattr(space, "start", None) if given is None else given
    if isinstance(space, spaces.Box):
        numbers = np.zeros(space.shape) if given is None else np.ravel(given)
        fits = numbers.size == np.prod(space.shape)
        action = numbers.reshape(space.shape).astype(space.dtype) if fits else None
    if not space.contains(action):
        raise ValueError(f"the action {given} is not in {space}: give one number a dimension")
    return action


def _another(seed: int | None) -> int | None:
    """A seed for the episode's second beginning, a function of its first one's; in [0, 2**31)."""
    return None if seed is None else int(np.random.SeedSequence(seed).generate_state(1)[0] >> 1)


def _game(env: Env) -> Any:
    """The Atari game inside."""
    game = env.unwrapped
    if not hasattr(game, "ale"):
        raise ValueError(f"{type(game).__name__} is no Atari game")
    return game
