"""Traces: records of running episodes, from which their behaviors are computed when they end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from escalade.envs import Environment, SlotError, VectorEnvironment
from escalade.envs.structured import as_array
from escalade.envs.vector import InformingVector, RememberingVector
from escalade.errors import InputError
from escalade.rollout.behavior import Behavior, check_sizes

Behaviors = NDArray[np.float32]
Slots = NDArray[np.int64]


@dataclass(frozen=True)
class Trajectory:
    """One whole episode, the argument of a behavior function. The function may write to the arrays."""

    observations: NDArray[Any]
    """Observations, flat or as images, including the first and the last, shape (steps + 1, ...)."""
    actions: NDArray[Any]
    """Actions passed to the environment, shape (steps, ...); objects for a Dict or Tuple space."""
    rewards: NDArray[np.float64]
    """Rewards, shape (steps,)."""
    infos: dict[str, NDArray[np.float64]]
    """Numbers of the steps' infos for each of ``info_keys``, shape (steps,), NaN if a step has none."""


class NumberTraces:
    """Numbers of the last step, or of every n-th. After an early end, the last step's are repeated."""

    def __init__(self, behavior: Behavior, environment: Environment, vector: VectorEnvironment) -> None:
        self._kind, self._every, self._vector = behavior.kind, behavior.every or 0, vector
        self._places = [environment.info_keys.index(key) for key in behavior.keys] or [*behavior.places]
        width = len(self._places) or 128  # bytes of an Atari game's memory
        points = -(-(environment.max_episode_steps or 0) // self._every) if self._every else 1
        self._noted = np.zeros((vector.slots if self._every else 0, points, width), np.float32)

    def begin(self, slots: Slots, observations: NDArray[Any]) -> None:
        """Do nothing: numbers of the slot's previous episode are replaced at the end."""

    def step(
        self,
        slots: Slots,
        lengths: NDArray[np.int64],
        observations: NDArray[Any],
        actions: NDArray[Any],
        rewards: NDArray[Any],
    ) -> None:
        if not self._every:
            return
        # A wrapper may continue after the environment's registered step limit.
        due = np.flatnonzero((lengths % self._every == 0) & (lengths // self._every <= self._noted.shape[1]))
        if len(due):
            point = lengths[due] // self._every - 1
            self._noted[slots[due], point] = self._numbers(slots[due], observations[due])

    def behaviors(self, slots: Slots, lengths: NDArray[np.int64], observations: NDArray[Any]) -> Behaviors:
        """Return the behaviors of episodes that ended with the last step, shape (n, size)."""
        last = self._numbers(slots, observations)
        if not self._every:
            return last
        found = self._noted[slots]
        noted = lengths[:, None] // self._every > np.arange(found.shape[1])
        return np.where(noted[..., None], found, last[:, None]).reshape(len(slots), -1)

    def _numbers(self, slots: Slots, observations: NDArray[Any]) -> Behaviors:
        """Return numbers of the last step, shape (n, width)."""
        if self._kind == "ram":
            return cast(RememberingVector, self._vector).ram(slots).astype(np.float32)
        if self._kind == "info":
            numbers: NDArray[Any] = cast(InformingVector, self._vector).infos(slots)
        else:
            numbers = observations.reshape(len(slots), -1)
        with np.errstate(over="ignore"):  # numbers too large for float32 become infinite
            return numbers[:, self._places].astype(np.float32)


class FunctionTraces:
    """All steps of each episode, for a user's function."""

    def __init__(
        self, name: str, function: Callable[[Any], Any], keys: tuple[str, ...], vector: VectorEnvironment
    ) -> None:
        self._size = 0  # size of a behavior; 0 until the first is computed
        self._name, self._function, self._keys, self._vector = name, function, keys, vector
        self._first: dict[int, NDArray[Any]] = {}
        self._steps: dict[int, list[tuple[Any, ...]]] = {}

    def begin(self, slots: Slots, observations: NDArray[Any]) -> None:
        for slot, observation in zip(slots.tolist(), np.array(observations), strict=True):
            self._first[slot], self._steps[slot] = observation, []

    def step(
        self,
        slots: Slots,
        lengths: NDArray[np.int64],
        observations: NDArray[Any],
        actions: NDArray[Any],
        rewards: NDArray[Any],
    ) -> None:
        infos = np.zeros((len(slots), 0))
        if self._keys:
            infos = cast(InformingVector, self._vector).infos(slots)
        parts = (np.array(observations), actions, np.array(rewards, np.float64), infos)
        for slot, *step in zip(slots.tolist(), *parts, strict=True):
            self._steps[slot].append(tuple(step))

    def behaviors(self, slots: Slots, lengths: NDArray[np.int64], observations: NDArray[Any]) -> Behaviors:
        """Return the behaviors of episodes that ended with the last step, shape (n, size).

        Raises:
            SlotError: The user's function raised, or did not return numbers.
            InputError: The function returned no numbers, or more or fewer than before.
        """
        found = [self._behavior(row, slot) for row, slot in enumerate(slots.tolist())]
        return np.stack(found)

    def _behavior(self, row: int, slot: int) -> Behaviors:
        seen, actions, *rest = zip(*self._steps.pop(slot), strict=True)
        observations, rewards, infos = map(np.stack, (seen, *rest))
        observations = np.concatenate([self._first.pop(slot)[None], observations])
        by_key = {key: np.array(column) for key, column in zip(self._keys, infos.T, strict=True)}
        trajectory = Trajectory(observations, as_array(actions), rewards, by_key)
        try:
            with np.errstate(over="ignore"):
                numbers = np.atleast_1d(np.asarray(self._function(trajectory), np.float32))
        except (Exception, SystemExit) as problem:
            raise SlotError(row, problem) from problem
        if numbers.ndim != 1 or not len(numbers):
            raise InputError(
                f"`behavior` {self._name} returned shape {numbers.shape}; it must return a list of numbers"
            )
        self._size = self._size or len(numbers)
        check_sizes({self._size, len(numbers)})
        return numbers


Traces = NumberTraces | FunctionTraces
"""Traces by slot, which an episode keeps when its row moves.

Observations and actions have shape (n, ...), rewards and lengths (n,). ``lengths`` include the current step.
"""


def make_traces(behavior: Behavior, environment: Environment, vector: VectorEnvironment) -> Traces:
    """Return the traces of the episodes in a vector's slots."""
    if behavior.function is not None:
        return FunctionTraces(behavior, behavior.function, environment.info_keys, vector)
    return NumberTraces(behavior, environment, vector)
