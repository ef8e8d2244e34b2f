"""Wrappers for ``--wrap`` that change the start or end of episodes.

With each of them, an episode is a function of its seed and actions, independent of earlier episodes of the
same object.
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
    """Repeats one action after every reset. An episode that ends during these steps is reset."""

    def __init__(self, env: Env, steps: int, action: Any) -> None:
        super().__init__(env)
        self._steps, self._action = steps, action

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        for _ in range(self._steps):
            action = self._action.copy() if isinstance(self._action, np.ndarray) else self._action
            observation, _, terminated, truncated, info = self.env.step(action)
            if terminated or truncated:
                return self.env.reset(seed=_next_seed(seed), options=options)
        return observation, info


class BurnIn(_FirstSteps):
    """Take the first steps of every episode with one fixed action and drop their rewards.

    An episode that ends during these steps is reset with a seed derived from its own, without another
    burn-in.

    Args:
        env: the environment, with Box or Discrete actions.
        steps: number of steps of ``env``, at least 1.
        action: one number per dimension, or the number of a discrete action. Defaults to zeros, or the first
            action.

    Raises:
        ValueError: ``steps`` is not an integer of at least 1, or the action is not in the action space.
    """

    def __init__(self, env: Env, steps: int, action: float | Sequence[float] | None = None) -> None:
        if not isinstance(steps, int) or steps < 1:
            raise ValueError(f"steps {steps!r} must be an integer of at least 1")
        super().__init__(env, steps, _action(env.action_space, action))


class FireOnReset(_FirstSteps):
    """Press FIRE once after a reset, in Atari games that start only then.

    Raises:
        ValueError: the environment is not an Atari game.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env, steps=int(has_fire(_game(env))), action=FIRE)


class LifeLossEnds(gymnasium.Wrapper[Any, Any, Any, Any]):
    """End an episode of an Atari game when a life is lost.

    Raises:
        ValueError: the environment is not an Atari game.
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


def _action(space: spaces.Space[Any], numbers: float | Sequence[float] | None) -> Any:
    """Convert ``numbers`` to an action of the space."""
    action: Any = getattr(space, "start", None) if numbers is None else numbers
    if isinstance(space, spaces.Box):
        flat = np.zeros(space.shape) if numbers is None else np.ravel(numbers)
        fits = flat.size == np.prod(space.shape)
        action = flat.reshape(space.shape).astype(space.dtype) if fits else None
    if not space.contains(action):
        raise ValueError(f"the action {numbers} is not in {space}: pass one number per dimension")
    return action


def _next_seed(seed: int | None) -> int | None:
    """Derive a seed in [0, 2**31) for the second reset of an episode."""
    return None if seed is None else int(np.random.SeedSequence(seed).generate_state(1)[0] >> 1)


def _game(env: Env) -> Any:
    """Return the Atari game inside the wrappers."""
    game = env.unwrapped
    if not hasattr(game, "ale"):
        raise ValueError(f"{type(game).__name__} is not an Atari game")
    return game
