"""Policies of a batch on a device: no tensor leaves it between observations and actions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from escalade.envs.actions import ActionMap
from escalade.errors import InputError
from escalade.perturbation import Stream, shared_center
from escalade.perturbation.address import hash64
from escalade.perturbation.device import gumbels, normals
from escalade.policies.drawing import TEMPERATURE
from escalade.policies.modules import State, first_states, is_stateful, map_state
from escalade.policies.networks import layout_of
from escalade.policies.population.held_module import HeldModule
from escalade.policies.population.layout import copy_module
from escalade.policies.population.members import Members
from escalade.policies.population.torch_network import TorchNetwork
from escalade.rollout.episodes import EpisodeJob
from escalade.rollout.rollouts import RolloutSetup

Numbers = NDArray[np.int64]
_SQUASHED: dict[str, Callable[[Tensor], Tensor]] = {
    "rescale": lambda raw: raw.clamp(-1, 1),
    "tanh": torch.tanh,
    "sigmoid": lambda raw: torch.tanh(raw / 2),
}


class TensorActor:
    """Members of one module, called together: first their rows, then those of the unperturbed policy.

    Raises:
        InputError: An option of the policy is not supported on a device.
    """

    selects = False

    def __init__(self, setup: RolloutSetup, rows: int, device: torch.device) -> None:
        assert isinstance(setup.network, TorchNetwork)
        module = copy_module(setup.network.module).to(device)
        self._held = HeldModule(module, layout_of(module), setup.perturbation)
        self._stateful = is_stateful(module)
        self._rows, self._device = rows, device
        self._map = action_map(setup.actions, device)
        noisy = setup.actions.draws or (setup.action_noise and setup.actions.continuous)
        self._noise = OutputNoise(setup, rows, device) if noisy else None

    def begin(self, job: EpisodeJob) -> None:
        self._job = job
        center = shared_center(job.population, job.center)
        if center is not None:
            self._held.begin(center)

    def load(self, items: Numbers, seeds: Numbers) -> None:
        """Assign members to the rows. Rows beyond the items run the unperturbed policy and are ignored."""
        job = self._job
        trained = items[items < job.training_items]
        self._trained, self._each = len(trained), job.episodes
        self._members: Members | None = None
        if self._trained:
            members = [int(item) // job.episodes + job.first_member for item in trained[:: job.episodes]]
            assert job.population is not None
            self._members = Members(self._held, job.population, members)
        self._states = self._first(seeds) if self._stateful else None
        if self._noise is not None:
            self._noise.load(job, items, seeds)

    def __call__(self, seen: Tensor, step: int) -> Tensor:
        raw = self._forward(seen)
        return self._map(raw if self._noise is None else self._noise(raw, step))

    def select(self, rows: Numbers, moved: bool) -> None:
        """Do nothing: the episodes of a member stay together."""

    def _forward(self, seen: Tensor) -> Tensor:
        """Return the outputs of all rows, shape (num_envs, outputs)."""
        cut, parts = self._trained, []
        states: list[State] = []
        if self._members is not None:
            grid = (len(self._members), self._each)
            found = self._members(
                seen[:cut].reshape(*grid, *seen.shape[1:]),
                *([] if self._states is None else [_part(self._states[0], grid)]),
            )
            raw = found[0] if self._stateful else found
            parts.append(raw.reshape(cut, -1))
            if self._stateful:
                states.append(map_state(lambda part: part.flatten(0, 1), found[1]))
        if cut < self._rows:
            found = self._held.module(seen[cut:], *([] if self._states is None else [self._states[-1]]))
            parts.append(found[0] if self._stateful else found)
            if self._stateful:
                states.append(found[1])
        if self._stateful:
            self._states = states
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _first(self, seeds: Numbers) -> list[State]:
        """Return the first states of the members' rows and of the others, without empty groups."""
        groups = (seeds[: self._trained], seeds[self._trained :])
        firsts = [first_states(self._held.module, some.tolist()) for some in groups if len(some)]
        return [map_state(lambda part: part.to(self._device), first) for first in firsts]


def _part(state: State, grid: tuple[int, int]) -> State:
    """Reshape a state of rows to members and episodes."""
    return map_state(lambda part: part.reshape(*grid, *part.shape[1:]), state)


class OutputNoise:
    """Noise on outputs by address, as :class:`~escalade.rollout.exploration.Exploration` has it.

    Outputs of Discrete actions are sampled; those of Box actions have the noise ``action_noise``.
    """

    def __init__(self, setup: RolloutSetup, rows: int, device: torch.device) -> None:
        self._draws = setup.actions.draws
        self._deviation = TEMPERATURE if self._draws else setup.action_noise
        self._numbers, self._stream = (gumbels, Stream.CHOICE) if self._draws else (normals, Stream.ACTION)
        self._rows, self._device = rows, device

    def load(self, job: EpisodeJob, items: Numbers, seeds: Numbers) -> None:
        """Assign the rows 0, 1, ... to these items of the job. ``seeds`` has one for each row."""
        scale = np.zeros((self._rows, 1), np.float32)
        noisy = items < (job.drawn_items if self._draws else job.training_items)
        scale[: len(items), 0] = self._deviation * noisy
        self._scale = torch.from_numpy(scale).to(self._device)
        keys = hash64(int(self._stream), seeds).view(np.int64)
        self._keys = torch.from_numpy(keys).to(self._device)

    def __call__(self, raw: Tensor, step: int) -> Tensor:
        """Return the changed outputs, shape (rows, outputs), of this step."""
        return raw + self._scale * self._numbers(self._keys, step, raw.shape[1])


def action_map(actions: ActionMap, device: torch.device) -> Callable[[Tensor], Tensor]:
    """Return :meth:`escalade.envs.actions.ActionMap.compile` for tensors: Discrete, and Box without bins.

    Raises:
        InputError: The space or the head is not supported.
    """
    space = actions.space
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return lambda raw: raw.argmax(dim=1) + start
    if not isinstance(space, spaces.Box) or actions.head != "plain":
        raise InputError(
            f"policies on `device` {device} support Discrete and Box actions without bins, not {space}"
        )
    low, high = (torch.from_numpy(np.float32(bound)).to(device) for bound in (space.low, space.high))
    names = actions.bounding.split(",")
    each = np.array(names * (low.numel() // len(names))).reshape(space.shape)
    bounded = torch.from_numpy(space.bounded_below & space.bounded_above).to(device)
    middle, half = torch.where(bounded, (low + high) / 2, 0), torch.where(bounded, (high - low) / 2, 1)
    squashed = {name: torch.from_numpy(each == name).to(device) & bounded for name in set(names) - {"clip"}}

    def mapped(raw: Tensor) -> Tensor:
        raw = raw.reshape(-1, *space.shape)
        for name, chosen in squashed.items():
            raw = torch.where(chosen, middle + half * _SQUASHED[name](raw), raw)
        return torch.minimum(torch.maximum(raw, low), high)

    return mapped
