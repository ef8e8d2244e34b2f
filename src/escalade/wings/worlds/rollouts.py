"""Episodes of a batched world: members in, episode results out, without a look at the host on the way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from escalade.engines.base import Feed
from escalade.envs import Environment
from escalade.envs.spaces import is_image, moments_size
from escalade.policies.normalizer import Normalization, normalize
from escalade.rollout.batches import Batches, Found
from escalade.rollout.episodes import MOMENTS, RecordType
from escalade.rollout.rollouts import RolloutSetup
from escalade.support.generators import Generators, generators_kept
from escalade.wings.worlds.acting import make_actor
from escalade.wings.worlds.world import World, let_go, opened

_LOOK_EVERY = 16  # steps between questions whether all episodes have ended: each waits for the device
_NEVER = 2**62


class WorldRollouts:
    """Runs batches of episodes, each from the reset of the whole world to the last end in it."""

    def __init__(self, setup: RolloutSetup) -> None:
        self.environment = setup.environment
        self.world = opened(setup.environment)
        self.world.users += 1
        self.rows = self.world.num_envs
        self.actor = make_actor(setup, self.rows)
        space = setup.environment.observation_space
        self._scaled = is_image(space) and not setup.normalize_images
        self.record = RecordType(0, moments_size(space, setup.normalize_images))

    def info(self) -> dict[str, Any]:
        """Return what the engine tells the trainer of its workers."""
        return {"slots": 1, "refills": False}

    def begin(self, batches: Batches) -> None:
        """Turn to the batches of a generation."""
        self.batches = batches
        self.actor.begin(batches.job)

    def run(self, feed: Feed) -> None:
        """Run batches until the feed has no more."""
        with torch.no_grad(), generators_kept():
            while items := feed.take(1, wait=True):
                feed.put(items[0], self._play(items[0], feed))

    def close(self) -> None:
        """Close the world."""
        let_go(self.world)

    def _play(self, batch: int, feed: Feed) -> Found:
        job, items = self.batches.job, self.batches.items(batch)
        count, device = len(items), self.world.device
        seeds = np.resize(job.episode_seeds(items), self.rows)  # rows without an episode are idle
        observations = self.world.reset(seeds, self.batches.seed(batch))
        self.actor.load(items, seeds)
        normalization = job.normalization
        moments = None if normalization is None else Moments(normalization, observations)
        limits = self._limits(items)
        alive = torch.arange(self.rows, device=device) < count
        returns = torch.zeros(self.rows, dtype=precision(device), device=device)
        lengths = torch.zeros(self.rows, dtype=torch.int64, device=device)
        for step in range(int(limits.max())):
            if moments is None:
                seen = self._inputs(observations)
                returns += torch.where(alive & ~torch.isfinite(seen.flatten(1).sum(1)), math.nan, 0)
            else:
                seen = moments.take(observations, alive)
            observations, rewards, ended = self.world.step(self.actor(seen, step))
            returns += torch.where(alive, rewards, 0)
            lengths += alive
            alive = alive & ~ended & (step + 1 < limits)
            if step % _LOOK_EVERY == _LOOK_EVERY - 1:
                feed.alive()
                if not bool(alive.any()):
                    break
                self.actor.keep(alive)
        return self._records(items, returns, lengths, moments)

    def _limits(self, items: NDArray[np.int64]) -> Tensor:
        """The most steps of each row, shape (num_envs,)."""
        job, limit = self.batches.job, self.environment.max_episode_steps or _NEVER
        limits = np.full(self.rows, 0, np.int64)
        limits[: len(items)] = limit
        if job.cap is not None:
            limits[: len(items)][items < job.training_items] = min(job.cap, limit)
        return torch.from_numpy(limits).to(self.world.device)

    def _inputs(self, observations: Tensor) -> Tensor:
        """The inputs of policies that normalise nothing."""
        seen = observations.to(torch.float32)
        return seen / 255 if self._scaled else seen

    def _records(
        self, items: NDArray[np.int64], returns: Tensor, lengths: Tensor, moments: Moments | None
    ) -> Found:
        count = len(items)
        records = np.empty(count, self.record.plain if moments is None else self.record.observed)
        records["return"] = records["score"] = returns[:count].cpu().numpy()
        records["length"] = lengths[:count].cpu().numpy()
        if moments is None:
            return [(np.arange(count), records)]
        records[MOMENTS] = moments.found(lengths)[:count]
        diverged = ~np.isfinite(records[MOMENTS]).all(axis=(1, 2))
        records["return"][diverged] = records["score"][diverged] = np.nan
        watched = self.batches.job.observed(items)
        others = np.empty(np.count_nonzero(~watched), self.record.plain)
        for name in others.dtype.names or ():
            others[name] = records[name][~watched]
        return [(np.flatnonzero(watched), records[watched]), (np.flatnonzero(~watched), others)]


class Moments:
    """Sums of what each row's episode observes, about its first observation, and the normalised inputs."""

    def __init__(self, normalization: Normalization, first: Tensor) -> None:
        self._precision = precision(first.device)
        self._first = self._flat(first).clone()  # the world may write the next ones to the same memory
        self._sums = torch.zeros((2, *self._first.shape), dtype=self._precision, device=first.device)
        self._mean, self._inverse_std = (
            torch.from_numpy(part).to(first.device, self._precision)
            for part in (normalization.mean, normalization.inverse_std)
        )
        self._clip = normalization.clip

    def take(self, observations: Tensor, alive: Tensor) -> Tensor:
        """Add the observations of rows that are ``alive``; what the policies see of all rows."""
        flat = self._flat(observations)
        deviations = torch.where(alive[:, None], flat - self._first, 0)
        self._sums[0] += deviations
        self._sums[1] += deviations.square_()
        seen = normalize(flat, self._mean, self._inverse_std, self._clip)
        return seen.to(torch.float32).reshape(observations.shape)

    def found(self, lengths: Tensor) -> NDArray[np.float64]:
        """Mean and sum of squared deviations of each row, shape (rows, 2, size), of so many observations."""
        total, squares = self._sums
        offset = total / lengths.clamp(min=1)[:, None]
        means = self._first + offset
        return torch.stack((means, (squares - total * offset).clamp(min=0)), dim=1).cpu().double().numpy()

    def _flat(self, observations: Tensor) -> Tensor:
        return observations.reshape(len(observations), -1).to(self._precision)


def precision(device: torch.device) -> torch.dtype:
    """The type of sums: double precision, which Apple's GPUs lack."""
    return torch.float32 if device.type == "mps" else torch.float64


def supports(environment: Environment) -> bool:
    """Return whether episodes step together."""
    return environment.batched


def make_vector(environment: Environment, slots: int) -> WorldVector:
    """The world as slots that begin together, for random play; it has as many as it has episodes."""
    return WorldVector(opened(environment))


class WorldVector:
    """A world's episodes as :class:`escalade.envs.vector.VectorEnvironment` has them, in arrays."""

    refills = False

    def __init__(self, world: World) -> None:
        self._world, self.slots = world, world.num_envs
        self._generators = Generators()
        world.users += 1

    def reset(self, slots: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[Any]:
        """Begin all episodes; observations of the given ones."""
        return self._array(self._world.reset(np.resize(seeds, self.slots), int(seeds[0])))[slots]

    def step(
        self, slots: NDArray[np.int64], actions: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        """One step of all episodes, of which those without an action take the last one."""
        taken = torch.from_numpy(np.resize(actions, (self.slots, *actions.shape[1:])))
        turn = self._world.step(taken.to(self._world.device))
        return tuple(self._array(part)[slots] for part in turn)  # type: ignore[return-value]

    def close(self) -> None:
        """Close the world, if nobody else has it."""
        let_go(self._world)
        self._generators.restore()

    def _array(self, part: Tensor) -> NDArray[Any]:
        found: NDArray[Any] = part.cpu().numpy().copy()
        return found if found.ndim < 2 else found.reshape(len(found), -1) if found.ndim < 4 else found
