"""One worker's share of a generation: many episodes in lockstep, with one batched forward pass per step.

An episode's result is a function of its member's parameters, the normalizer, its seed, the environment, and
the center if it starts along the center's episode; not of its slot, the episodes beside it, or the worker.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from escalade.engines.base import Feed, Work
from escalade.envs import ActionMap, Environment, SlotError, settle_backend, vectorize
from escalade.envs.backends import BACKENDS
from escalade.envs.batched import ROLLOUTS
from escalade.envs.masks import advice
from escalade.envs.spaces import is_image, moments_size, observation_dtype, observation_shape
from escalade.envs.vector import InformingVector, KeepingVector, SlowVector
from escalade.errors import EnvironmentFailure, in_words, with_place
from escalade.perturbation import LowRank, NoiseSource, shared_center
from escalade.policies.normalizer import divide_images
from escalade.rollout.behavior import Behavior
from escalade.rollout.episodes import MOMENTS, EpisodeJob, RecordType
from escalade.rollout.exploration import make_exploration
from escalade.rollout.network import Network
from escalade.rollout.path import Path
from escalade.rollout.rewards import Reward
from escalade.rollout.traces import make_traces

Vector = NDArray[np.float32]

_PARAMETER_BYTES = 48 * 2**20  # of members' parameters in one batch
_PACKING_COST = 4  # of moving a row to the front, in forward passes of the row
_LOOK_EVERY = 32  # steps between checks for new work while slots are free


@dataclass(frozen=True)
class RolloutSetup:
    """Everything a worker needs that stays the same for a whole run; calling it returns the work."""

    environment: Environment
    network: Network
    actions: ActionMap
    perturbation: NoiseSource
    action_noise: float = 0.0
    """Standard deviation of the noise on the outputs of members."""
    normalize_images: bool = False
    """True if images, too, are normalized by running mean and deviation, instead of divided by 255."""
    reward: Reward | None = None
    """Transform of the rewards that fitness sums, or None for the rewards themselves."""
    behavior: Behavior | None = None
    """Behavior of an episode, or None if none is recorded."""

    def __call__(self) -> Work:
        if self.environment.batched:
            made: Work = ROLLOUTS.load()(self)
            return made
        return Rollouts(self)


class Rollouts:
    """Runs a job's episodes, as many at once as there are slots."""

    def __init__(self, setup: RolloutSetup) -> None:
        self.environment = settle_backend(setup.environment)
        most = BACKENDS[self.environment.backend].most_rows
        source, network = setup.perturbation, setup.network
        numbers = source.length if isinstance(source, LowRank) else network.dimension  # per member
        rows = max(1, min(most, _PARAMETER_BYTES // (4 * numbers)))
        # Not `vector.slots`, which depends on this machine's memory: rounding may depend on this number.
        self.forward = setup.network.forward(rows, setup.perturbation)
        self.vector = vectorize(self.environment, rows)
        rows = self.vector.slots  # fewer if the backend cannot hold as many
        # Only vectors that may tolerate exceptions store their messages.
        self._raised: dict[int, str] = getattr(self.vector, "raised", {})
        self.map = setup.actions.compile()
        self.perturbation = setup.perturbation  # referenced, so that populations find their table by its seed
        self.explore = make_exploration(
            setup.actions, setup.action_noise, getattr(self.vector, "masks", None)
        )
        self.reward = setup.reward
        self.slots = rows
        space = self.environment.observation_space
        shape, images = observation_shape(space), is_image(space)
        size = moments_size(space, setup.normalize_images)
        self._slot = np.arange(rows)
        self._item = np.zeros(rows, np.int64)
        self._seed = np.zeros(rows, np.int64)
        self._alive = np.zeros(rows, np.bool_)
        self._return = np.zeros(rows)
        self._score = np.zeros(rows)  # sums of transformed rewards, if rewards are transformed
        self._length = np.zeros(rows, np.int64)
        self.record = RecordType(len(self.environment.info_keys), size)
        behavior = setup.behavior
        self._traces = None if behavior is None else make_traces(behavior, self.environment, self.vector)
        self._moments = np.zeros((2, rows, size))
        # Vectors are stored in double precision for their moments, images in their own dtype.
        self._observations = np.zeros((rows, *shape), observation_dtype(space) if images else np.float64)
        self._pixels = np.zeros((rows, *shape), np.float32) if images else None
        self._first = np.zeros((rows, size))  # each episode's first observation: the origin of its moments
        self._count = 0  # rows in use; rows from here on are free
        self._running = 0  # rows in use whose episode has not ended
        self._wasted = 0  # forward passes of rows whose episode has ended, since the last packing

    def info(self) -> dict[str, Any]:
        """Return facts about this worker that the engine passes to the trainer."""
        return {"slots": self.slots, "refills": self.vector.refills}

    def begin(self, job: EpisodeJob) -> None:
        """Discard the previous job, and begin ``job``."""
        self.job = job
        self.forward.begin(shared_center(job.population, job.center))
        self._count = self._running = 0
        self._alive[:] = False
        self._path: Path | None = None

    def run(self, feed: Feed) -> None:
        """Run episodes until the feed is empty."""
        if isinstance(self.vector, SlowVector):
            self.vector.alive = feed.alive
        if self.job.along and self._path is None:
            self._walk(feed)
        until_look = room = 0
        while True:
            until_look -= 1
            if until_look < 0 or self._running == 0 or self._room > room:
                until_look, room = _LOOK_EVERY, self._room
                if not self._start(feed) and self._running == 0:
                    return
            if self._step(feed) and self.vector.refills:
                until_look = 0
            feed.alive()

    def _walk(self, feed: Feed) -> None:
        """Play the center's episode, in whose states the members' episodes start."""
        path = Path(self.job.training_items, cast(KeepingVector, self.vector))
        self._start(path)
        while self._running:
            path.keep(int(self._length[0]), int(self._slot[0]), float(self._return[0]))
            self._step(path)
            feed.alive()
        path.end(float(self._return[0]))
        self._path = path

    @property
    def _room(self) -> int:
        """Number of slots that may be used now; a :class:`SlowVector` has fewer at first."""
        return int(getattr(self.vector, "room", self.slots))

    def close(self) -> None:
        """Close the environments."""
        self.vector.close()

    def _start(self, feed: Feed) -> bool:
        """Start episodes in free rows. Return True if any started."""
        if self._running and not self.vector.refills:
            return False
        if self._running == 0:
            self._count = 0
            self._slot[:] = np.arange(self.slots)
        alone = self._running == 0
        items = feed.take(self._room - self._running, wait=alone)
        if self._path is not None:
            items = self._path.others(items, feed, wait=alone)
        if not items:
            return False
        ended = np.flatnonzero(~self._alive[: self._count])
        fresh = np.arange(self._count, self._count + max(0, len(items) - len(ended)))
        rows = np.concatenate([ended[: len(items)], fresh])
        self._count += len(fresh)
        numbers = np.array(items, np.int64)
        self._item[rows] = numbers
        self._seed[rows] = self.job.episode_seeds(numbers)
        along = numbers < self.job.training_items
        begin = self.vector.reset if self._path is None else partial(self._path.begin, along)
        seeds = self._seed[rows].tolist()
        for row, item, seed in zip(rows.tolist(), items, seeds, strict=True):
            self.forward.load(row, *self.job.individual(item), seed)
        self._score[rows] = 0.0
        self._length[rows] = 0
        self._moments[:, rows] = 0.0
        seen = self._guarded(rows, begin, self._slot[rows], self._seed[rows])
        if self._traces is not None:
            self._traces.begin(self._slot[rows], seen)
        self._observations[rows] = seen
        self._return[rows] = np.where(self._finite(rows), 0.0, np.nan)
        if self._first.shape[1]:
            first = np.asarray(seen).reshape(len(rows), -1)
            self._first[rows] = np.nan_to_num(first, nan=0.0, posinf=0.0, neginf=0.0)
        self._alive[rows] = True
        self._running += len(items)
        self._wasted = 0
        return True

    def _step(self, feed: Feed) -> bool:
        """Advance every running episode by one step. Return True if any ended."""
        self._wasted += self._count - self._running
        if self._wasted > _PACKING_COST * self._running:
            self._pack()
        count = self._count
        raw = self.forward(self._inputs(count))
        if self.explore is not None:
            addresses = (self._item[:count], self._seed[:count], self._length[:count], self._slot[:count])
            raw = self.explore(raw, self.job, *addresses)
        actions = self.map(raw)
        if self._running == count:
            ended = self._advance(slice(0, count), self._slot[:count], actions)
            rows = np.flatnonzero(ended) if ended.any() else None
        else:
            alive = np.flatnonzero(self._alive[:count])
            ended = self._advance(alive, self._slot[alive], actions[alive])
            rows = alive[ended] if ended.any() else None
        if rows is None:
            return False
        self._hand_in(feed, rows)
        return True

    def _inputs(self, count: int) -> Vector:
        """Return the policies' inputs, and update the moments of the observations."""
        observations = self._observations[:count]
        if self.job.normalization is None:
            if self._pixels is not None:
                return divide_images(observations, self._pixels[:count])
            return observations.astype(np.float32)
        flat = observations.reshape(count, -1)
        deviations = flat - self._first[:count]
        self._moments[0, :count] += deviations
        deviations *= deviations
        self._moments[1, :count] += deviations
        return self.job.normalization.apply(flat).reshape(observations.shape)

    def _advance(self, rows: Any, slots: NDArray[np.int64], actions: NDArray[Any]) -> NDArray[np.bool_]:
        ended: NDArray[np.bool_]
        # Traces need a copy, because the environment may write to the actions.
        taken = actions if self._traces is None else copy.deepcopy(actions)
        observations, rewards, ended = self._guarded(rows, self.vector.step, slots, actions)
        self._observations[rows] = observations
        if self.reward is not None:
            rewards, components = rewards.T if rewards.ndim == 2 else (rewards, rewards)
            self._score[rows] += self.reward(components)
        self._return[rows] += rewards
        self._length[rows] += 1
        if self._traces is not None:
            self._traces.step(slots, self._length[rows], observations, taken, rewards)
        if self.job.cap is not None:
            trained = self._item[rows] < self.job.training_items
            ended = ended | (trained & (self._length[rows] >= self.job.cap))
        return ended

    def _hand_in(self, feed: Feed, rows: NDArray[np.intp]) -> None:
        self._return[rows[self._diverged(rows)]] = np.nan
        self._alive[rows] = False
        self._running -= len(rows)
        observed = self.job.observed(self._item[rows]) & (self.job.normalization is not None)
        behaviors = self._behaviors(rows)  # before the records, whose dtype may depend on it
        for row in rows if self._raised else ():
            if (slot := int(self._slot[row])) in self._raised:
                feed.put_raised(int(self._item[row]), self._raised[slot])
        for part, kind in ((observed, self.record.observed), (~observed, self.record.plain)):
            if part.any():
                records = self._records(rows[part], kind)
                records["behavior"] = behaviors[part]
                feed.put_many(self._item[rows[part]], records)

    def _behaviors(self, rows: NDArray[np.intp]) -> Vector:
        """Return the behaviors of ended episodes, shape (n, size).

        The size is 0 if none is configured. Episodes with a non-finite return have NaN, or size 0 as long as
        a function's size is unknown.
        """
        whole = np.isfinite(self._return[rows])
        if self._traces is None or not whole.any():
            return np.full((len(rows), self.record.behavior), np.nan, np.float32)
        good = rows[whole]
        try:
            numbers = self._traces.behaviors(self._slot[good], self._length[good], self._observations[good])
        except SlotError as failed:
            who, problem = self.job.describe(int(self._item[good[failed.row]])), failed.problem
            raise EnvironmentFailure(f"the `behavior` of {who} raised {in_words(problem)}") from problem
        if self.record.behavior != numbers.shape[1]:  # the first behavior of a function
            self.record = replace(self.record, behavior=numbers.shape[1])
        found = np.full((len(rows), numbers.shape[1]), np.nan, np.float32)
        found[whole] = numbers
        return found

    def _diverged(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return a mask of ended episodes with a non-finite last observation, whose returns are invalid.

        With normalization, the summed moments also reveal non-finite earlier observations.
        """
        finite = self._finite(rows)
        if self.job.normalization is not None:
            finite &= np.isfinite(self._moments[0, rows]).all(axis=1)
        return np.asarray(~finite)

    def _finite(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return a mask of the rows whose observation is finite, shape (n,)."""
        return np.asarray(np.isfinite(self._observations[rows].reshape(len(rows), -1)).all(axis=1))

    def _records(self, rows: NDArray[np.intp], kind: np.dtype[np.void]) -> NDArray[np.void]:
        """Return the records of ended episodes, shape (n,), with moments if ``kind`` has the field."""
        records, lengths = np.empty(len(rows), kind), self._length[rows]
        records["return"] = returns = self._return[rows]
        records["length"] = lengths
        # The score of an episode with a non-finite return is the return.
        scores = returns if self.reward is None else self._score[rows]
        records["score"] = np.where(np.isfinite(returns), scores, returns)
        if self.record.infos:
            records["infos"] = cast(InformingVector, self.vector).infos(self._slot[rows])
        if kind is self.record.observed:
            total, squares = self._moments[:, rows]
            with np.errstate(invalid="ignore", over="ignore"):  # of episodes that diverged
                offset = total / lengths[:, None]
                records[MOMENTS][:, 0] = self._first[rows] + offset
                records[MOMENTS][:, 1] = np.maximum(squares - total * offset, 0.0)
        return records

    def _pack(self) -> None:
        """Move running rows to the front, so that ended rows cost no more forward passes."""
        rows = np.flatnonzero(self._alive[: self._count])
        spare = np.flatnonzero(~self._alive[: self._count])
        count = len(rows)
        self._slot[: self._count] = self._slot[np.concatenate([rows, spare])]
        states = (self._item, self._seed, self._alive, self._return, self._score, self._length)
        for state in (*states, self._observations, self._first):
            state[:count] = state[rows]
        self._moments[:, :count] = self._moments[:, rows]
        self._alive[count : self._count] = False
        self.forward.keep(rows)
        self._count, self._wasted = count, 0

    def _guarded(self, rows: Any, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call the environments, and add the seed that reproduces it to an exception they raise."""
        try:
            return call(*arguments)
        except SlotError as failed:
            if isinstance(failed.problem, EnvironmentFailure):  # of the process, not of an episode
                raise failed.problem from None
            row = int(np.arange(self.slots)[rows][failed.row])
            where = self.job.describe(int(self._item[row]))
            # Not bound to a variable: its traceback holds this frame, and the cycle would leak.
            report = f"{with_place(failed.problem)}, in step {int(self._length[row])} of {where}"
            report += advice(self.environment.action_space, failed.problem)
            raise EnvironmentFailure(f"environment {self.environment.id} raised {report}") from failed.problem
