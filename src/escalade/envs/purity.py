"""Is an episode a function of its seed and its actions, whatever ran in the same object before?"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escalade.envs.backends import BACKENDS, vectorize
from escalade.envs.closing import close
from escalade.envs.environment import Environment
from escalade.envs.masks import LegalActions
from escalade.envs.spaces import flatten
from escalade.envs.vector import VectorEnvironment
from escalade.errors import InputError, one_line

Verdict = Literal["pure", "history", "random", "shared", "single", "unknown"]

# What an object carries over can depend on how often it was reset (Box2D's memory does), so one
# episode is replayed many times, after one long episode and after each other.
_REPLAYS = 12
_REPLAY_STEPS = 10
_OTHER_STEPS = 60
_SEED, _OTHER_SEED = 0, 1  # of the episode that is played again, and of one beside it
_SECONDS = 2.0  # after which a slow environment is replayed no further


@dataclass(frozen=True)
class Purity:
    """The findings of a replay.

    ``pure``: no difference was seen. ``history``: an object that had run other episodes gave another
    one than a new object. ``random``: two new objects gave different ones. ``shared``: an object gave another
    one while a second object ran beside it. ``single``: a second object could not be built beside the first.
    ``unknown``: the replay failed.
    """

    verdict: Verdict
    step: int | None = None
    """The step after which the two episodes first differ; 0 is the reset."""
    steps: int = 0
    """Steps the probe took."""
    problem: str = ""
    """The reason why nothing is known."""

    def note(self, env_id: str) -> str | None:
        """One line for the user; None when there is nothing to tell."""
        cost = "so the same seed need not give the same bits again, nor on another number of workers"
        match self.verdict:
            case "history":
                return (
                    f"{env_id} carries something over from one episode to the next (a replay differs from "
                    f"step {self.step} on), {cost}; `fresh_environments` builds a new one for every episode"
                )
            case "random":
                return (
                    f"{env_id} is not a function of its seed and actions (two new ones differ from step "
                    f"{self.step} on), {cost}; `fresh_environments` cannot help"
                )
            case "shared":
                return (
                    f"objects of {env_id} share something, such as a generator or a space of their class (an "
                    f"episode differs from step {self.step} on while another one runs beside it), {cost}; "
                    "make what they share in `__init__`: `fresh_environments` cannot help"
                )
            case "single":
                return (
                    f"a second object of {env_id} could not be built beside the first ({self.problem}): use "
                    "`envs_per_worker=1`"
                )
            case "unknown":
                return f"{env_id} could not be replayed to see if it keeps its seed: {self.problem}"
        return None


def probe_purity(environment: Environment) -> Purity:
    """Replay an episode in a new object, in a used one, and beside another that runs at the same time.

    At most about 220 steps of random actions. Environments are closed again. Backends whose every episode
    begins in a new environment, or in the state of one, are not probed; but where only such a backend has the
    environment, two of its waves are compared.

    Raises:
        InputError: what makes the environment returns the same object again.
    """
    if environment.backend != "auto" and BACKENDS[environment.backend].fresh and not environment.exclusive:
        return Purity("pure")
    player = _Player(environment)
    try:
        return _probe_waves(player) if environment.exclusive else _probe(environment, player)
    except InputError:
        raise
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever the environment's own code raises
        return Purity("unknown", steps=player.steps, problem=one_line(problem))


def _probe(environment: Environment, player: _Player) -> Purity:
    first = player.fresh(_SEED)
    if not environment.fresh:
        began, env = time.monotonic(), LegalActions(environment.make())
        try:
            player.play(env, _OTHER_SEED, _OTHER_STEPS)
            for _ in range(_REPLAYS):
                step = _first_difference(first, player.play(env, _SEED, _REPLAY_STEPS))
                if step is not None or time.monotonic() - began > _SECONDS:
                    break
        finally:
            close(env)
        if step is None and environment.envs_per_worker == 1:  # no worker has two, or none may
            return Purity("pure", None, player.steps)
        if step is None:
            return _probe_side_by_side(environment, player, first)
    again = _first_difference(first, player.fresh(_SEED))
    if again is not None:
        return Purity("random", again, player.steps)
    if environment.fresh:
        return _probe_side_by_side(environment, player, first)
    return Purity("history", step, player.steps)


def _probe_side_by_side(environment: Environment, player: _Player, alone: list[NDArray[Any]]) -> Purity:
    """Play the episode once more while a second object plays another one, step by step in turns.

    A worker holds many objects at once, and how many depends on the number of workers.
    """
    env = LegalActions(environment.make())
    try:
        other = LegalActions(environment.make())
    except (Exception, SystemExit) as problem:
        close(env)
        if isinstance(problem, InputError):
            raise
        return Purity("single", None, player.steps, one_line(problem))
    try:
        both = zip_longest(
            player.turns(env, _SEED, _REPLAY_STEPS), player.turns(other, _OTHER_SEED, _REPLAY_STEPS)
        )
        step = _first_difference(alone, [seen for seen, _ in both if seen is not None])
    finally:
        close(env)
        close(other)
    return Purity("pure" if step is None else "shared", step, player.steps)


def _probe_waves(player: _Player) -> Purity:
    """Play two episodes at once, and once more with their places changed."""
    first, again = (player.wave(seeds) for seeds in ([_SEED, _OTHER_SEED], [_OTHER_SEED, _SEED]))
    found = [_first_difference(first[row], again[1 - row]) for row in (0, 1)]
    steps = [step for step in found if step is not None]
    return Purity("random" if steps else "pure", min(steps, default=None), player.steps)


class _Player:
    """Plays episodes with the same random actions each time."""

    def __init__(self, environment: Environment) -> None:
        self.steps = 0
        self._environment = environment
        space = copy.deepcopy(environment.action_space)
        space.seed(_SEED)
        self._actions = [space.sample() for _ in range(_OTHER_STEPS)]
        self._discrete = isinstance(space, spaces.Discrete)

    def fresh(self, seed: int) -> list[NDArray[Any]]:
        """An episode in a new object."""
        env = LegalActions(self._environment.make())
        try:
            return self.play(env, seed, _REPLAY_STEPS)
        finally:
            close(env)

    def wave(self, seeds: list[int]) -> list[list[NDArray[Any]]]:
        """Episodes of these seeds in a new vector environment, all with the same actions.

        Where it holds fewer, they are played one after the other.
        """
        vector = vectorize(self._environment, len(seeds))
        waves = [seeds] if vector.slots == len(seeds) else [[seed] for seed in seeds]
        try:
            return [seen for wave in waves for seen in self._wave(vector, wave)]
        finally:
            vector.close()

    def _wave(self, vector: VectorEnvironment, seeds: list[int]) -> list[list[NDArray[Any]]]:
        running = np.arange(len(seeds))
        seen = [[row.reshape(-1)] for row in vector.reset(running, np.array(seeds, np.int64)).copy()]
        for action in self._actions[:_REPLAY_STEPS]:
            observations, rewards, ended = vector.step(running, np.array([action] * len(running)))
            self.steps += len(running)
            for row, number in enumerate(running.tolist()):
                facts = [np.reshape(rewards[row], -1), np.reshape(ended[row], -1)]
                seen[number].append(np.concatenate([observations[row].reshape(-1), *facts]))
            running = running[~ended]
            if not len(running):
                break
        return seen

    def play(self, env: gymnasium.Env[Any, Any], seed: int, steps: int) -> list[NDArray[Any]]:
        """Return what the environment gave: of the reset, then of each step."""
        return list(self.turns(env, seed, steps))

    def turns(self, env: gymnasium.Env[Any, Any], seed: int, steps: int) -> Iterator[NDArray[Any]]:
        """The same, one turn at a time."""
        space = self._environment.observation_space
        observation, _ = env.reset(seed=seed)
        yield np.array(flatten(space, observation), np.float64)
        for action in self._actions[:steps]:
            given = int(action) if self._discrete else copy.deepcopy(action)
            observation, reward, terminated, truncated, _ = env.step(given)
            self.steps += 1
            facts = [np.asarray(reward, np.float64).reshape(-1), [bool(terminated), bool(truncated)]]
            yield np.concatenate([flatten(space, observation), *facts])
            if terminated or truncated:
                return


def _first_difference(first: list[NDArray[Any]], other: list[NDArray[Any]]) -> int | None:
    for step, (one, two) in enumerate(zip(first, other, strict=False)):
        if not np.array_equal(one, two, equal_nan=True):
            return step
    return None if len(first) == len(other) else min(len(first), len(other))
