"""The policies of a batch of episodes: observations of the world in, actions out."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from escalade.perturbation import shared_center
from escalade.rollout.episodes import EpisodeJob
from escalade.rollout.exploration import make_exploration
from escalade.rollout.rollouts import RolloutSetup
from escalade.wings.worlds.tensors import TensorActor

Numbers = NDArray[np.int64]


class Actor(Protocol):
    """The policies of a batch."""

    def begin(self, job: EpisodeJob) -> None:
        """Begin a generation."""
        ...

    def load(self, items: Numbers, seeds: Numbers) -> None:
        """Begin episodes: rows 0, 1, ... are these items of the job, with these seeds."""
        ...

    def __call__(self, seen: Tensor, step: int) -> Tensor:
        """Actions of all rows, for what they see in this step."""
        ...

    def keep(self, alive: Tensor) -> None:
        """Leave out rows whose episode has ended, if that saves time: ``alive`` has the shape (num_envs,)."""
        ...


def make_actor(setup: RolloutSetup, rows: int) -> Actor:
    """The policies for ``rows`` episodes, where the world is."""
    device = setup.environment.device
    return ArrayActor(setup, rows) if device == "cpu" else TensorActor(setup, rows, torch.device(device))


class ArrayActor:
    """Policies on the CPU: the forward pass, draws and action map that other environments have."""

    def __init__(self, setup: RolloutSetup, rows: int) -> None:
        self._forward = setup.network.forward(rows, setup.perturbation)
        self._explore = make_exploration(setup.actions, setup.action_noise, None)
        self._map = setup.actions.compile()
        self._perturbation = setup.perturbation  # kept: populations that arrive find their table by its seed
        first = self._map(np.zeros((1, setup.actions.outputs), np.float32))
        self._actions = np.repeat(first, rows, axis=0)  # rows without an episode keep this one

    def begin(self, job: EpisodeJob) -> None:
        self._job = job
        self._forward.begin(shared_center(job.population, job.center))

    def load(self, items: Numbers, seeds: Numbers) -> None:
        self._items, self._seeds, self._rows = items, seeds[: len(items)], np.arange(len(items))
        for row, (item, seed) in enumerate(zip(items.tolist(), self._seeds.tolist(), strict=True)):
            self._forward.load(row, *self._job.individual(item), seed)

    def __call__(self, seen: Tensor, step: int) -> Tensor:
        raw = self._forward(seen.numpy()[self._rows])
        if self._explore is not None:
            steps = np.full(len(self._rows), step)
            raw = self._explore(raw, self._job, self._items, self._seeds, steps, self._rows)
        self._actions[self._rows] = self._map(raw)
        return torch.from_numpy(self._actions.copy())  # which the world may keep

    def keep(self, alive: Tensor) -> None:
        rows = np.flatnonzero(alive.numpy()[self._rows])
        if 2 * len(rows) < len(self._rows):  # to move them costs a few forward passes
            self._forward.keep(rows)
            self._items, self._seeds, self._rows = self._items[rows], self._seeds[rows], self._rows[rows]
