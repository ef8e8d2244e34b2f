"""Random play: whole episodes in one object."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escalade.envs.environment import Environment
from escalade.envs.masks import LegalActions
from escalade.envs.process import close
from escalade.envs.spaces import flatten
from escalade.envs.wrapping import one_bool, one_number


class Player:
    """Plays episodes of an environment, all with the same ``number`` of random actions, over and over.

    Or with ``actions`` in their place.
    """

    def __init__(self, environment: Environment, number: int, actions: Sequence[Any] = ()) -> None:
        self.environment = environment
        space = copy.deepcopy(environment.action_space)
        space.seed(0)
        self._actions = actions or [space.sample() for _ in range(number)]
        self._discrete = isinstance(space, spaces.Discrete)

    def new(self) -> gymnasium.Env[Any, Any]:
        """Build an object that plays a legal action instead of an illegal one."""
        return LegalActions(self.environment.make())

    def turns(self, env: gymnasium.Env[Any, Any], seed: int, skipped: int = 0) -> Iterator[NDArray[Any]]:
        """Yield the observation of the reset; then, of each step, that, the reward and the two ends.

        The first ``skipped`` actions are left out.

        Raises:
            Misfit: a reward is not a number, or an end is not a boolean.
        """
        space = self.environment.observation_space
        yield np.array(flatten(space, env.reset(seed=seed)[0]), np.float64)
        for action in islice(cycle(self._actions), skipped, None):
            given = int(action) if self._discrete else copy.deepcopy(action)
            observation, reward, terminated, truncated, _ = env.step(given)
            ends = one_bool(terminated, "terminated"), one_bool(truncated, "truncated")
            yield np.concatenate([flatten(space, observation), [one_number(reward), *ends]])
            if any(ends):
                return

    def fresh(self, seed: int) -> Iterator[NDArray[Any]]:
        """Yield the turns of an episode in a new object."""
        env = self.new()
        try:
            yield from self.turns(env, seed)
        finally:
            close(env)
