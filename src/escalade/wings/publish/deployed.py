"""A policy as one module of plain torch, for exported files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor, nn

from escalade.envs.actions import ActionMap
from escalade.envs.spaces import observation_dtype, observation_shape
from escalade.errors import InputError
from escalade.policies.modules import State, map_state, tensors_of
from escalade.policies.policy import Policy, network_inputs
from escalade.policies.population.layout import copy_module
from escalade.support.exact import cpu_by_default

_EXAMPLE_ROWS = 2  # torch.export treats a batch size of 1 as fixed


class DeployedPolicy(nn.Module):
    """Maps observations to actions: normalization, network and action map in one torch module.

    ``forward(observation, *state)`` returns ``(action, output, *next_state)``. The first dimension of every
    tensor is the batch. ``observation`` is as in :meth:`Policy.forward`, ``output`` is the output of the
    network, and ``action`` is an action of the environment. The state is a flat list of tensors, which is
    empty for a stateless network. ``inputs`` and ``outputs`` are the names of these tensors in exported
    files.

    Args:
        policy: policy to copy.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.network = copy_module(policy.network).eval().requires_grad_(False)
        self.observation_space = policy.observation_space
        self.normalized = policy.normalized
        self.takes_vectors, self.stateful = policy.takes_vectors, policy.stateful
        self.observation_clip = policy.observation_clip
        self.observation_mean: Tensor
        self.observation_inverse_std: Tensor
        self.register_buffer("observation_mean", policy.observation_mean.clone())
        self.register_buffer("observation_inverse_std", policy.observation_inverse_std.clone())
        self.map = _map_of(policy.actions)
        with torch.no_grad(), cpu_by_default():
            first = policy.network.initial_state(0) if policy.stateful else ()  # type: ignore[operator]
        self._like: State = map_state(torch.clone, first)
        self.first_state = [part.detach().clone() for part in tensors_of(first)]
        """Initial state of an episode with seed 0, without a batch dimension."""

        states = range(len(self.first_state))
        self.inputs = ["observation", *(f"state_{number}" for number in states)]
        self.outputs = ["action", "output", *(f"next_state_{number}" for number in states)]

    def example(self) -> tuple[Tensor, ...]:
        """Return zero observations and the initial state, for a batch."""
        space = self.observation_space
        seen = np.zeros((_EXAMPLE_ROWS, *observation_shape(space)), observation_dtype(space))
        states = [part.expand(_EXAMPLE_ROWS, *part.shape).clone() for part in self.first_state]
        return torch.from_numpy(seen), *states

    def forward(self, observation: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        """Return actions, outputs of the network and the next state."""
        seen = network_inputs(self, observation)
        if not self.stateful:
            output = self.network(seen)
            return self.map(output), output
        parts = iter(state)
        output, after = self.network(seen, map_state(lambda _: next(parts), self._like))
        return self.map(output), output, *tensors_of(after)


def _map_of(actions: ActionMap) -> Callable[[Tensor], Tensor]:
    """Return the action map in torch. :meth:`ActionMap.compile` returns the same map in numpy."""
    space, compiled = actions.space, actions.compile()
    if actions.parts:
        raise InputError(
            f"actions of type {type(space).__name__} cannot be exported; use the policy with escalade.load"
        )
    if isinstance(space, spaces.Discrete):
        return _choice([np.arange(space.n) + space.start], ())
    if isinstance(space, spaces.MultiDiscrete):
        sizes, starts = space.nvec.reshape(-1), space.start.reshape(-1)
        groups = [np.arange(size) + start for size, start in zip(sizes, starts, strict=True)]
        return _choice([values.astype(space.dtype) for values in groups], space.shape)
    if isinstance(space, spaces.MultiBinary):
        return lambda raw: (raw > 0).to(torch.int8).reshape(raw.shape[0], *space.shape)
    if actions.head != "plain":
        return _choice([*compiled.values], compiled.shape)  # type: ignore[attr-defined]
    return _bounded(compiled)


def _choice(groups: Sequence[NDArray[Any]], shape: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
    """Return a function that selects the value of the largest output in each group."""
    sizes, values = [len(of) for of in groups], torch.from_numpy(np.concatenate(groups))
    firsts = torch.tensor([0, *np.cumsum(sizes)[:-1].tolist()])

    def chosen(raw: Tensor) -> Tensor:
        best = torch.stack([group.argmax(dim=1) for group in torch.split(raw, sizes, dim=1)], dim=1)
        return values[best + firsts].reshape(raw.shape[0], *shape)

    return chosen


def _bounded(compiled: Any) -> Callable[[Tensor], Tensor]:
    """Return a function that maps outputs to numbers within the bounds of a Box."""
    names = ("low", "high", "middle", "half")
    low, high, middle, half = (torch.from_numpy(np.array(getattr(compiled, name))) for name in names)
    maps = {name: torch.from_numpy(np.array(chosen)) for name, chosen in sorted(compiled.maps.items())}
    inner, dtype = (torch.from_numpy(np.zeros(1, kind)).dtype for kind in (compiled.inner, compiled.dtype))

    def bounded(raw: Tensor) -> Tensor:
        mapped = raw
        for name, chosen in maps.items():
            mapped = torch.where(chosen, middle + half * _SQUASHED[name](raw), mapped)
        clipped = torch.minimum(torch.maximum(mapped.to(inner), low), high)
        clipped = torch.round(clipped) if compiled.whole else clipped
        return clipped.to(dtype).reshape(raw.shape[0], *compiled.shape)

    return bounded


_SQUASHED: dict[str, Callable[[Tensor], Tensor]] = {
    "rescale": lambda raw: raw.clip(-1, 1),
    "tanh": torch.tanh,
    "sigmoid": lambda raw: torch.tanh(raw / 2),
}
