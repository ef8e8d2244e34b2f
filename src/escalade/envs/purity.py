"""Checks that an episode is a function of its seed and actions, by replaying it."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import cycle, islice, zip_longest
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escalade.envs.backends import BACKENDS
from escalade.envs.environment import Environment
from escalade.envs.masks import LegalActions
from escalade.envs.process import closed_at_end
from escalade.envs.spaces import flatten
from escalade.envs.structured import as_array
from escalade.envs.vector import VectorEnvironment, vectorize
from escalade.envs.wrapping import one_bool, one_number
from escalade.errors import one_line

# State carried between episodes can depend on the number of resets, as in Box2D. Therefore one episode is
# replayed many times in the same object, after one long episode.
_REPLAYS = 12
_TURNS = 11  # of a replay: the reset and ten steps
_OTHER_TURNS = 61
_SEED, _OTHER_SEED = 0, 1  # of the replayed episode, and of a different one
_SECONDS = 2.0  # after which the replays of a slow environment stop


@dataclass(frozen=True)
class Purity:
    """Result of replaying an episode.

    ``pure``: no difference was found. ``history``: the episode differs in an object that has run other
    episodes. ``random``: it differs in two new objects. ``shared``: it differs while a second object runs
    beside it. ``single``: a second object could not be built beside the first. ``batch``: a batched world
    does not repeat its episodes. ``unknown``: the replay failed.
    """

    verdict: Literal["pure", "history", "random", "shared", "single", "batch", "unknown"]
    step: int | None = None
    """First step in which the two episodes differ; 0 is the reset."""
    problem: str = ""
    """Error message of a failed replay."""

    def note(self, env_id: str) -> str | None:
        """Return a one-line warning, or None if the environment is pure."""
        cost = "so the same seed may not reproduce a run, also not with a different number of workers"
        notes = {
            "history": f"{env_id} carries state from one episode to the next (a replay differs from step "
            f"{self.step} on), {cost}; `fresh_environments` builds a new object for every episode",
            "random": f"{env_id} is not a function of its seed and actions (two new objects differ from step "
            f"{self.step} on), {cost}: draw random numbers only from `self.np_random`, and call "
            "super().reset(seed=seed); `fresh_environments` does not help",
            "shared": f"objects of {env_id} share state, such as a generator or a space of their class "
            f"(an episode differs from step {self.step} on while another runs beside it), {cost}; create "
            "shared state in `__init__`; `fresh_environments` does not help",
            "single": f"a second object of {env_id} could not be built beside the first ({self.problem}): "
            "use `num_envs=1`",
            "batch": f"{env_id} does not repeat a batch of episodes exactly (two runs differ from step "
            f"{self.step} on), {cost}; many simulators are not deterministic on a GPU",
            "unknown": f"{env_id} could not be replayed to check that it is deterministic: {self.problem}",
        }
        return notes.get(self.verdict)


class Player:
    """Plays episodes of an environment, all with the same random actions.

    Args:
        environment: the environment.
        number: number of random actions, which are repeated in longer episodes.
        actions: actions to play instead.
    """

    def __init__(self, environment: Environment, number: int, actions: Sequence[Any] = ()) -> None:
        self.environment = environment
        space = copy.deepcopy(environment.action_space)
        space.seed(0)
        self._actions = actions or [space.sample() for _ in range(number)]
        self._discrete = isinstance(space, spaces.Discrete)

    def new(self) -> gymnasium.Env[Any, Any]:
        """Build an object that replaces illegal actions by legal ones."""
        return LegalActions(self.environment.make())

    def turns(self, env: gymnasium.Env[Any, Any], seed: int, skipped: int = 0) -> Iterator[NDArray[Any]]:
        """Yield the first observation, then observation, reward, terminated and truncated of each step.

        The first ``skipped`` actions are left out.

        Raises:
            InvalidValue: a reward is not a number, or ``terminated`` or ``truncated`` is not a bool.
        """
        space = self.environment.observation_space
        yield np.array(flatten(space, env.reset(seed=seed)[0]), np.float64)
        for action in islice(cycle(self._actions), skipped, None):
            taken = int(action) if self._discrete else copy.deepcopy(action)
            observation, reward, terminated, truncated, _ = env.step(taken)
            ends = one_bool(terminated, "terminated"), one_bool(truncated, "truncated")
            yield np.concatenate([flatten(space, observation), [one_number(reward), *ends]])
            if any(ends):
                return

    def fresh(self, seed: int) -> Iterator[NDArray[Any]]:
        """Yield the turns of an episode in a new object."""
        with closed_at_end(self.new()) as env:
            yield from self.turns(env, seed)


def probe_purity(environment: Environment) -> Purity:
    """Replay an episode in a new object, in a used one, and while a second object runs.

    Takes at most about 220 steps of random actions and closes the environments. Backends that start every
    episode in a new environment, or in the state of one, are not checked unless only they have it.
    """
    if environment.backend != "auto" and BACKENDS[environment.backend].fresh and not environment.exclusive:
        return Purity("pure")
    try:
        if environment.batched:
            return _probe_batch(environment)
        return _probe(Player(environment, _OTHER_TURNS))
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - code of the environment may raise anything
        return Purity("unknown", problem=one_line(problem))


def _probe(player: Player) -> Purity:
    environment = player.environment
    first = list(islice(player.fresh(_SEED), _TURNS))
    if environment.fresh:
        again = _difference(first, player.fresh(_SEED))
        if again is not None:
            return Purity("random", again)
    elif (step := _difference_when_reused(player, first)) is not None:
        again = _difference(first, player.fresh(_SEED))
        return Purity("history", step) if again is None else Purity("random", again)
    elif environment.num_envs == 1:  # a worker never has two objects
        return Purity("pure")
    return _probe_side_by_side(player, first)


def _difference_when_reused(player: Player, first: list[NDArray[Any]]) -> int | None:
    began, step = time.monotonic(), None
    with closed_at_end(player.new()) as env:
        for _ in islice(player.turns(env, _OTHER_SEED), _OTHER_TURNS):
            pass
        for _ in range(_REPLAYS):
            step = _difference(first, player.turns(env, _SEED))
            if step is not None or time.monotonic() - began > _SECONDS:
                break
    return step


def _probe_side_by_side(player: Player, alone: list[NDArray[Any]]) -> Purity:
    """Replay the episode while a second object plays another one, alternating step by step.

    A worker has many objects at once, and their number depends on the number of workers.
    """
    with closed_at_end(player.new()) as env, ExitStack() as opened:
        try:
            other = opened.enter_context(closed_at_end(player.new()))
        except (Exception, SystemExit) as problem:  # noqa: BLE001 - code of the environment may raise anything
            return Purity("single", problem=one_line(problem))
        both = zip_longest(player.turns(env, _SEED), islice(player.turns(other, _OTHER_SEED), _TURNS))
        step = _difference(alone, (seen for seen, _ in both if seen is not None))
    return Purity("pure" if step is None else "shared", step)


def _probe_batch(environment: Environment) -> Purity:
    """Play a batch of episodes of a world twice, with the same seeds and actions."""
    space = copy.deepcopy(environment.action_space)
    space.seed(0)
    with closing(vectorize(environment, environment.num_envs or 1)) as vector:
        taken = [as_array([space.sample() for _ in range(vector.slots)]) for _ in range(_TURNS - 1)]
        step = _difference(list(_batch_turns(vector, taken)), _batch_turns(vector, taken))
    return Purity("pure" if step is None else "batch", step)


def _batch_turns(vector: VectorEnvironment, taken: Sequence[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Yield the first observations, then observations, rewards and ends of each step, one row per episode."""
    slots = np.arange(vector.slots)
    yield vector.reset(slots, slots)
    for actions in taken:
        yield np.column_stack([part.reshape(len(slots), -1) for part in vector.step(slots, actions)])


def _difference(first: list[NDArray[Any]], other: Iterable[NDArray[Any]]) -> int | None:
    """Return the first step in which an episode differs from ``first``, or None. ``first`` may be shorter."""
    for step, (one, two) in enumerate(zip_longest(first, islice(other, len(first)))):
        if one is None or two is None or not np.array_equal(one, two, equal_nan=True):
            return step
    return None
