"""A policy as one module of plain torch: what is written into files that need no Escalade."""

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

_EXAMPLE_ROWS = 2  # torch.export takes a batch of 1 for a fixed size


class DeployedPolicy(nn.Module):
    """Observations to actions: normalisation, network and action map, without anything of numpy.

    ``forward(observation, *state)`` gives ``(action, output, *next_state)``. Every tensor has the batch
    first. ``observation`` is what :meth:`Policy.forward` takes, ``output`` what the network gave, and
    ``action`` what the environment takes. The state is a flat list of tensors, none for a network without
    one. These have names in files: ``inputs`` and ``outputs``.

    Args:
        policy: copied, so that it stays as it is.
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
        """The state that an episode with the seed 0 begins with, without a batch dimension."""

        states = range(len(self.first_state))
        self.inputs = ["observation", *(f"state_{number}" for number in states)]
        self.outputs = ["action", "output", *(f"next_state_{number}" for number in states)]

    def example(self) -> tuple[Tensor, ...]:
        """Observations of zeros, and the first state, for a batch."""
        space = self.observation_space
        seen = np.zeros((_EXAMPLE_ROWS, *observation_shape(space)), observation_dtype(space))
        states = [part.expand(_EXAMPLE_ROWS, *part.shape).clone() for part in self.first_state]
        return torch.from_numpy(seen), *states

    def forward(self, observation: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        """Actions, raw outputs and the next state."""
        seen = network_inputs(self, observation)
        if not self.stateful:
            output = self.network(seen)
            return self.map(output), output
        given = iter(state)
        output, after = self.network(seen, map_state(lambda _: next(given), self._like))
        return self.map(output), output, *tensors_of(after)


def _map_of(actions: ActionMap) -> Callable[[Tensor], Tensor]:
    """The action map, as :meth:`ActionMap.compile` makes it of numpy, of torch."""
    space, compiled = actions.space, actions.compile()
    if actions.parts:
        raise InputError(
            f"actions of a {type(space).__name__} cannot be exported; load the policy with escalade.load"
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
    """The value of the largest output in each group of outputs."""
    sizes, values = [len(of) for of in groups], torch.from_numpy(np.concatenate(groups))
    firsts = torch.tensor([0, *np.cumsum(sizes)[:-1].tolist()])

    def chosen(raw: Tensor) -> Tensor:
        best = torch.stack([group.argmax(dim=1) for group in torch.split(raw, sizes, dim=1)], dim=1)
        return values[best + firsts].reshape(raw.shape[0], *shape)

    return chosen


def _bounded(compiled: Any) -> Callable[[Tensor], Tensor]:
    """Numbers within the bounds of a Box."""
    names = ("low", "high", "middle", "half")
    low, high, middle, half = (torch.from_numpy(np.array(getattr(compiled, name))) for name in names)
    maps = {name: torch.from_numpy(np.array(chosen)) for name, chosen in sorted(compiled.maps.items())}
    inner, dtype = (torch.from_numpy(np.zeros(1, kind)).dtype for kind in (compiled.inner, compiled.dtype))

    def bounded(raw: Tensor) -> Tensor:
        mapped = raw
        for name, chosen in maps.items():
            mapped = torch.where(chosen, middle + half * _SQUASHED[name](raw), mapped)
        kept = torch.minimum(torch.maximum(mapped.to(inner), low), high)
        kept = torch.round(kept) if compiled.whole else kept
        return kept.to(dtype).reshape(raw.shape[0], *compiled.shape)

    return bounded


_SQUASHED: dict[str, Callable[[Tensor], Tensor]] = {
    "rescale": lambda raw: raw.clip(-1, 1),
    "tanh": torch.tanh,
    "sigmoid": lambda raw: torch.tanh(raw / 2),
}
