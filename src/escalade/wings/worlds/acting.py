"""Policies of a batch of episodes: from observations of the world to actions."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from escalade.perturbation import shared_center
from escalade.rollout.episodes import EpisodeJob
from escalade.rollout.exploration import make_exploration
from escalade.rollout.network import Forward
from escalade.rollout.rollouts import RolloutSetup
from escalade.wings.worlds.tensors import TensorActor
from escalade.wings.worlds.wide import WideForward, make_wide

Numbers = NDArray[np.int64]


class Actor(Protocol):
    """The policies of a batch."""

    selects: bool
    """True if :meth:`select` saves time."""

    def begin(self, job: EpisodeJob) -> None:
        """Begin a generation."""
        ...

    def load(self, items: Numbers, seeds: Numbers) -> None:
        """Begin episodes: rows 0, 1, ... are these items of the job; ``seeds`` has one for each row."""
        ...

    def __call__(self, seen: Tensor, step: int) -> Tensor:
        """Return the actions of all rows for their observations in this step."""
        ...

    def select(self, rows: Numbers, moved: bool) -> None:
        """Continue with these rows of the world. If ``moved``, the world has no other rows from now on."""
        ...


def make_actor(setup: RolloutSetup, rows: int) -> Actor:
    """Return the policies of ``rows`` episodes, on the device of the world."""
    device = setup.environment.device
    return ArrayActor(setup, rows) if device == "cpu" else TensorActor(setup, rows, torch.device(device))


class ArrayActor:
    """Policies on the CPU, with the draws and the action map that other environments have."""

    selects = True

    def __init__(self, setup: RolloutSetup, rows: int) -> None:
        wide = make_wide(setup.network, setup.perturbation)
        self._forward: WideForward | EachMember = wide or EachMember(
            setup.network.forward(rows, setup.perturbation)
        )
        self._explore = make_exploration(setup.actions, setup.action_noise, None)
        self._map = setup.actions.compile()
        self._perturbation = setup.perturbation  # populations that arrive find their table by its seed
        first = self._map(np.zeros((1, setup.actions.outputs), np.float32))
        self._idle = np.repeat(first, rows, axis=0)

    def begin(self, job: EpisodeJob) -> None:
        self._job = job
        self._forward.begin(job)

    def load(self, items: Numbers, seeds: Numbers) -> None:
        self._items, self._seeds, self._rows = items, seeds[: len(items)], np.arange(len(items))
        self._actions = self._idle.copy()  # rows without an episode take the first action
        self._forward.load(items, self._seeds)

    def __call__(self, seen: Tensor, step: int) -> Tensor:
        whole = len(self._rows) == len(self._actions)
        observations = seen.numpy()
        raw = self._forward.outputs(observations if whole else observations[self._rows])
        if self._explore is not None:
            steps = np.full(len(self._rows), step)
            raw = self._explore(raw, self._job, self._items, self._seeds, steps, self._rows)
        if whole:
            return torch.from_numpy(self._map(raw))
        self._actions[self._rows] = self._map(raw)
        return torch.from_numpy(self._actions.copy())  # the world may store it

    def select(self, rows: Numbers, moved: bool) -> None:
        chosen = np.searchsorted(self._rows, rows)
        self._forward.keep(chosen)
        self._items, self._seeds = self._items[chosen], self._seeds[chosen]
        self._rows = np.arange(len(rows)) if moved else rows
        if moved:
            self._actions = self._actions[: len(rows)]


class EachMember:
    """The forward pass of other environments, which loads one member after the other."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward
        self.keep, self.outputs = forward.keep, forward.__call__

    def begin(self, job: EpisodeJob) -> None:
        """Begin a generation."""
        self._job = job
        self._forward.begin(shared_center(job.population, job.center))

    def load(self, items: Numbers, seeds: Numbers) -> None:
        """Assign the rows 0, 1, ... to these items of the job, whose episodes have these seeds."""
        for row, (item, seed) in enumerate(zip(items.tolist(), seeds.tolist(), strict=True)):
            self._forward.load(row, *self._job.individual(item), seed)
