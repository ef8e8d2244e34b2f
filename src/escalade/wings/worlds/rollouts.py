"""Episodes of a batched world: members in, episode results out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from escalade.engines.base import Feed
from escalade.envs import Environment
from escalade.envs.spaces import is_image, moments_size
from escalade.rollout.batches import Batches, Found
from escalade.rollout.episodes import MOMENTS, RecordType
from escalade.rollout.rollouts import RolloutSetup
from escalade.support.generators import Generators, generators_kept
from escalade.wings.worlds.acting import make_actor
from escalade.wings.worlds.sums import Moments, Sums, flat
from escalade.wings.worlds.world import World, opened, release

_LOOK_EVERY = {"cpu": 8}  # steps between checks for ended episodes, a power of 2
_LOOK = 16  # on other devices, because each check waits for the device
_FULL = 7 / 8  # share of running episodes above which removing the others saves too little
_NEVER = 2**62


class WorldRollouts:
    """Runs batches of episodes. Each batch resets the whole world and ends with its last episode."""

    def __init__(self, setup: RolloutSetup) -> None:
        self.environment = setup.environment
        self.world = opened(setup.environment)  # its own: threads step theirs at the same time
        self.rows = self.world.num_envs
        self.actor = make_actor(setup, self.rows)
        space = setup.environment.observation_space
        self._scaled = is_image(space) and not setup.normalize_images
        self.record = RecordType(0, moments_size(space, setup.normalize_images))
        self.world.users += 1

    def info(self) -> dict[str, Any]:
        """Return the facts about a worker that the trainer needs."""
        return {"slots": 1, "refills": False}

    def begin(self, batches: Batches) -> None:
        """Begin a generation."""
        self.batches = batches
        self.actor.begin(batches.job)

    def run(self, feed: Feed) -> None:
        """Run batches until the feed is empty."""
        with torch.no_grad(), generators_kept():
            while items := feed.take(1, wait=True):
                feed.put(items[0], self._play(items[0], feed))

    def close(self) -> None:
        """Close the world."""
        release(self.world)

    def _play(self, batch: int, feed: Feed) -> Found:
        job, items = self.batches.job, self.batches.items(batch)
        seeds = np.resize(job.episode_seeds(items), self.rows)  # rows without an episode are idle
        observations = self.world.reset(seeds, self.batches.seed(batch))
        self.actor.load(items, seeds)
        limits, watched = self._limits(items), job.observed(items)
        sums = Sums(torch.from_numpy(limits).to(self.world.device))
        stepped, every = self.rows, _LOOK_EVERY.get(self.world.device.type, _LOOK)
        moments = self._moments(observations, watched, every)
        for step in range(int(limits.max())):
            if step % every == 0:
                feed.alive()
                if moments is not None and step:
                    moments.flush(sums.seen)
                alive = int(sums.alive.sum())
                if alive == 0:
                    break
                if self.actor.selects and alive <= _FULL * stepped:
                    observations = self._select(observations, sums, moments)
                    stepped = alive
            if moments is None:
                inputs = self._inputs(observations)
                sums.observe(inputs.flatten(1))
            else:
                seen = flat(observations)
                sums.observe(seen)
                moments.add(seen)
                inputs = moments.normalized(seen).reshape(observations.shape)
            observations, rewards, ended = self.world.step(self.actor(inputs, step))
            sums.add(rewards, ended, step)
        if moments is not None:
            moments.flush(sums.seen)
        sums.finish()
        return self._records(watched, sums, moments)

    def _select(self, observations: Tensor, sums: Sums, moments: Moments | None) -> Tensor:
        """Continue with the rows whose episode has not ended, and return their observations."""
        (rows,) = torch.nonzero(sums.alive, as_tuple=True)
        before, moved = len(sums.alive), self.world.select(rows)
        self.actor.select(rows.numpy(), moved)
        if not moved:
            return observations
        sums.select(rows)
        if moments is not None:
            moments.select(rows, before)
        return observations[rows]

    def _limits(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the most steps of each row, shape (num_envs,)."""
        job, limit = self.batches.job, self.environment.max_episode_steps or _NEVER
        limits = np.zeros(self.rows, np.int64)
        limits[: len(items)] = limit
        if job.cap is not None:
            limits[: len(items)][items < job.training_items] = min(job.cap, limit)
        return limits

    def _moments(self, observations: Tensor, watched: NDArray[np.bool_], steps: int) -> Moments | None:
        normalization = self.batches.job.normalization
        if normalization is None:
            return None
        rows = torch.from_numpy(np.flatnonzero(watched)).to(self.world.device)
        return Moments(normalization, flat(observations), rows, steps)

    def _inputs(self, observations: Tensor) -> Tensor:
        """Return the inputs of policies that do not normalize."""
        seen = observations.to(torch.float32)
        return seen / 255 if self._scaled else seen

    def _records(self, watched: NDArray[np.bool_], sums: Sums, moments: Moments | None) -> Found:
        count = len(watched)
        records = np.empty(count, self.record.plain)
        records["return"] = records["score"] = sums.returns[:count].cpu().numpy()
        records["length"] = sums.lengths[:count].cpu().numpy()
        if moments is None:
            return [(np.arange(count), records)]
        places = np.flatnonzero(watched)
        observed = np.empty(len(places), self.record.observed)
        for name in records.dtype.names or ():
            observed[name] = records[name][places]
        observed[MOMENTS] = moments.found(observed["length"])
        return [(places, observed), (np.flatnonzero(~watched), records[~watched])]


def supports(environment: Environment) -> bool:
    """Return whether ``environment`` is a batched world."""
    return environment.batched


def make_vector(environment: Environment, slots: int) -> WorldVector:
    """Return the world as slots that begin together, one per episode, for random play.

    Rollouts may use the same world, because some simulators allow only one in a process.
    """
    return WorldVector(opened(environment, shared=True))


class WorldVector:
    """A world with the interface of :class:`escalade.envs.vector.VectorEnvironment`, in arrays."""

    refills = False

    def __init__(self, world: World) -> None:
        self._world, self.slots = world, world.num_envs
        self._generators = Generators()
        world.users += 1

    def reset(self, slots: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[Any]:
        """Begin all episodes, and return the observations of these slots."""
        return self._array(self._world.reset(np.resize(seeds, self.slots), int(seeds[0])))[slots]

    def step(
        self, slots: NDArray[np.int64], actions: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        """Advance all episodes by one step, and return the results of these slots."""
        taken = torch.from_numpy(np.resize(actions, (self.slots, *actions.shape[1:])))
        turn = self._world.step(taken.to(self._world.device))
        return tuple(self._array(part)[slots] for part in turn)  # type: ignore[return-value]

    def close(self) -> None:
        """Release the world."""
        release(self._world)
        self._generators.restore()

    def _array(self, part: Tensor) -> NDArray[Any]:
        found: NDArray[Any] = part.cpu().numpy().copy()
        return found if found.ndim < 2 else found.reshape(len(found), -1) if found.ndim < 4 else found
