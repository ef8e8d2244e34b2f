"""Random play: whole episodes in one object, and the speed of many slots."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escalade.envs.environment import Environment
from escalade.envs.masks import LegalActions, Masks
from escalade.envs.process import close
from escalade.envs.spaces import flatten
from escalade.envs.structured import as_array
from escalade.envs.vector import vectorize
from escalade.envs.wrapping import one_bool, one_number

_BATCHES = 16  # of actions, drawn beforehand: choosing them is not the simulator's time


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


class RandomSlots:
    """Random actions in all slots of an environment, without a policy: the most that training can reach."""

    def __init__(self, environment: Environment, slots: int) -> None:
        self._vector = vectorize(environment, slots)
        self._slots = np.arange(self._vector.slots)
        self._masks: Masks | None = getattr(self._vector, "masks", None)
        space = environment.action_space
        space.seed(0)
        self._actions = [as_array([space.sample() for _ in self._slots]) for _ in range(_BATCHES)]
        self._steps = 0

    def begin(self, seeds: NDArray[np.int64] | None = None) -> float:
        """Begin an episode in each slot, and return the seconds that one took."""
        began = time.perf_counter()
        self._vector.reset(self._slots, self._slots if seeds is None else seeds)
        return (time.perf_counter() - began) / len(self._slots)

    def step_for(self, seconds: float) -> float:
        """Return the steps a second over about ``seconds``, and over one step in each slot at least."""
        began, before = time.perf_counter(), self._steps
        while self._steps == before or time.perf_counter() - began < seconds:
            self.step()
        return (self._steps - before) * len(self._slots) / (time.perf_counter() - began)

    def step(self) -> None:
        """Take a step in each slot; ended episodes begin anew where the backend refills its slots."""
        actions = self._actions[self._steps % _BATCHES].copy()
        if self._masks is not None:
            actions = self._masks.legal(self._slots, actions)
        ended = self._vector.step(self._slots, actions)[2]
        if self._vector.refills and ended.any():
            over = np.flatnonzero(ended)
            self._vector.reset(self._slots[over], over)
        self._steps += 1

    def close(self) -> None:
        """Close the environments."""
        self._vector.close()
