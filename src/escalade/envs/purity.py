"""Is an episode a function of its seed and its actions, whatever ran in the same object before?"""

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

# What an object carries over can depend on how often it was reset (Box2D's memory does), so one
# episode is replayed many times, after one long episode and after each other.
_REPLAYS = 12
_TURNS = 11  # of a replay: the reset, and ten steps
_OTHER_TURNS = 61
_SEED, _OTHER_SEED = 0, 1  # of the episode that is played again, and of one beside it
_SECONDS = 2.0  # after which a slow environment is replayed no further


@dataclass(frozen=True)
class Purity:
    """The findings of a replay.

    ``pure``: no difference was seen. ``history``: an object that had run other episodes gave a different
    one than a new object. ``random``: two new objects gave different ones. ``shared``: an object gave a
    different one while a second object ran beside it. ``single``: a second object could not be built beside
    the first. ``batch``: a batched world gave different episodes when they began again. ``unknown``: the
    replay failed.
    """

    verdict: Literal["pure", "history", "random", "shared", "single", "batch", "unknown"]
    step: int | None = None
    """The step after which the two episodes first differ; 0 is the reset."""
    problem: str = ""
    """The reason why nothing is known."""

    def note(self, env_id: str) -> str | None:
        """One line for the user, or None if the environment is pure."""
        cost = "so the same seed need not give the same bits again, nor on another number of workers"
        notes = {
            "history": f"{env_id} carries something over from one episode to the next (a replay differs from "
            f"step {self.step} on), {cost}; `fresh_environments` builds a new one for every episode",
            "random": f"{env_id} is not a function of its seed and actions (two new ones differ from step "
            f"{self.step} on), {cost}: draw from `self.np_random` alone, and pass the seed to "
            "super().reset(seed=seed); `fresh_environments` cannot help",
            "shared": f"objects of {env_id} share something, such as a generator or a space of their class "
            f"(an episode differs from step {self.step} on while another one runs beside it), {cost}; make "
            "what they share in `__init__`: `fresh_environments` cannot help",
            "single": f"a second object of {env_id} could not be built beside the first ({self.problem}): "
            "use `num_envs=1`",
            "batch": f"{env_id} does not repeat a batch of episodes to the last bit (two differ from step "
            f"{self.step} on), {cost}: many simulators do not on a GPU",
            "unknown": f"{env_id} could not be replayed to see if it keeps its seed: {self.problem}",
        }
        return notes.get(self.verdict)


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
        with closed_at_end(self.new()) as env:
            yield from self.turns(env, seed)


def probe_purity(environment: Environment) -> Purity:
    """Replay an episode in a new object, in a used one, and beside another that runs at the same time.

    At most about 220 steps of random actions. Environments are closed again. Backends whose every episode
    begins in a new environment, or in the state of one, are not probed, unless only they have it.
    """
    if environment.backend != "auto" and BACKENDS[environment.backend].fresh and not environment.exclusive:
        return Purity("pure")
    try:
        if environment.batched:
            return _probe_batch(environment)
        return _probe(Player(environment, _OTHER_TURNS))
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever the environment's own code raises
        return Purity("unknown", problem=one_line(problem))


def _probe(player: Player) -> Purity:
    environment = player.environment
    first = list(islice(player.fresh(_SEED), _TURNS))
    if environment.fresh:
        again = _difference(first, player.fresh(_SEED))
        if again is not None:
            return Purity("random", again)
    elif (step := _difference_in_a_used_one(player, first)) is not None:
        again = _difference(first, player.fresh(_SEED))
        return Purity("history", step) if again is None else Purity("random", again)
    elif environment.num_envs == 1:  # no worker has two, or none may
        return Purity("pure")
    return _probe_side_by_side(player, first)


def _difference_in_a_used_one(player: Player, first: list[NDArray[Any]]) -> int | None:
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
    """Play the episode once more while a second object plays another one, step by step in turns.

    A worker holds many objects at once, and how many depends on the number of workers.
    """
    with closed_at_end(player.new()) as env, ExitStack() as opened:
        try:
            other = opened.enter_context(closed_at_end(player.new()))
        except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever the environment's own code raises
            return Purity("single", problem=one_line(problem))
        both = zip_longest(player.turns(env, _SEED), islice(player.turns(other, _OTHER_SEED), _TURNS))
        step = _difference(alone, (seen for seen, _ in both if seen is not None))
    return Purity("pure" if step is None else "shared", step)


def _probe_batch(environment: Environment) -> Purity:
    """Play a batch of a world's episodes twice, with the same seeds and actions."""
    space = copy.deepcopy(environment.action_space)
    space.seed(0)
    with closing(vectorize(environment, environment.num_envs or 1)) as vector:
        taken = [as_array([space.sample() for _ in range(vector.slots)]) for _ in range(_TURNS - 1)]
        step = _difference(list(_batch_turns(vector, taken)), _batch_turns(vector, taken))
    return Purity("pure" if step is None else "batch", step)


def _batch_turns(vector: VectorEnvironment, taken: Sequence[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Yield the observations of a reset, then those of each step with rewards and ends: rows of episodes."""
    slots = np.arange(vector.slots)
    yield vector.reset(slots, slots)
    for actions in taken:
        yield np.column_stack([part.reshape(len(slots), -1) for part in vector.step(slots, actions)])


def _difference(first: list[NDArray[Any]], other: Iterable[NDArray[Any]]) -> int | None:
    """Return the first step in which an episode differs from ``first``, the beginning of one, or None."""
    for step, (one, two) in enumerate(zip_longest(first, islice(other, len(first)))):
        if one is None or two is None or not np.array_equal(one, two, equal_nan=True):
            return step
    return None
