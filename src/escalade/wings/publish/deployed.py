"""A policy as one module of plain torch: what is written into files that need no Escalade."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from escalade.envs.actions import ActionMap
from escalade.envs.spaces import observation_dtype, observation_shape
from escalade.errors import InputError
from escalade.policies.modules import Chain, State, VirtualBatchNorm, map_state, tensors_of
from escalade.policies.policy import Policy, network_inputs
from escalade.policies.population.layout import copy_module
from escalade.support.exact import cpu_by_default


class DeployedPolicy(nn.Module):
    """Observations to actions: normalisation, network and action map, without anything of numpy.

    ``forward(observation, *state)`` gives ``(action, output, *next_state)``. Every tensor has the batch
    first. ``observation`` is what :meth:`Policy.forward` takes, ``output`` what the network gave, and
    ``action`` what the environment takes. The state is a flat list of tensors, none for a network without
    one. What virtual batch normalisation keeps is no part of it: it stays the same, and the module holds it.

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
        self._fixed = _fixed_parts(policy.network, first)
        for number, part in enumerate(tensors_of(first)):
            if number in self._fixed:
                self.register_buffer(f"fixed_{number}", part.detach()[None].clone())
        self.first_state = [part.detach().clone() for part in self.moving(first)]
        """The state that an episode with the seed 0 begins with, without a batch dimension."""

    def example(self, batch: int) -> list[Tensor]:
        """Observations of zeros, and the first state, for a batch."""
        space = self.observation_space
        seen = np.zeros((batch, *observation_shape(space)), observation_dtype(space))
        states = [part.expand(batch, *part.shape).clone() for part in self.first_state]
        return [torch.from_numpy(seen), *states]

    def moving(self, state: State) -> list[Tensor]:
        """The tensors of a policy's state that change, in the order that :meth:`forward` takes them."""
        return [part for number, part in enumerate(tensors_of(state)) if number not in self._fixed]

    def forward(self, observation: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        """Actions, raw outputs and the next state."""
        seen = network_inputs(self, observation)
        if not self.stateful:
            output = self.network(seen)
            return self.map(output), output
        given, count = iter(state), len(self._fixed) + len(state)
        parts = [getattr(self, f"fixed_{n}") if n in self._fixed else next(given) for n in range(count)]
        found = iter(parts)
        output, after = self.network(seen, map_state(lambda _: next(found), self._like))
        return self.map(output), output, *self.moving(after)


def _fixed_parts(network: nn.Module, first: State) -> frozenset[int]:
    """Places, in the flat state, of what does not change: the statistics of virtual batch normalisation."""
    if not isinstance(network, Chain):
        return frozenset()
    fixed, place = set(), 0
    for layer, part in zip(network.stateful_layers, first, strict=True):
        size = len(tensors_of(part))
        if isinstance(layer, VirtualBatchNorm):
            fixed |= set(range(place, place + size))
        place += size
    return frozenset(fixed)


def _map_of(actions: ActionMap) -> nn.Module:
    """The action map, as :meth:`ActionMap.compile` makes it of numpy, as a module of torch."""
    space, compiled = actions.space, actions.compile()
    if actions.parts:
        raise InputError(
            f"actions of a {type(space).__name__} cannot be exported; load the policy with escalade.load"
        )
    if isinstance(space, spaces.Discrete):
        return _Choices([int(space.n)], np.array([space.start]), (), np.dtype(np.int64))
    if isinstance(space, spaces.MultiDiscrete):
        sizes = space.nvec.reshape(-1).tolist()
        return _Choices(sizes, space.start.reshape(-1), space.shape, space.dtype)
    if isinstance(space, spaces.MultiBinary):
        return _SignActions(space.shape)
    return _BinActions(compiled) if actions.head != "plain" else _BoundedActions(compiled)


class _Choices(nn.Module):
    """The largest output of each group."""

    def __init__(self, sizes: list[int], start: Any, shape: tuple[int, ...], dtype: Any) -> None:
        super().__init__()
        self._sizes, self._shape, self._dtype = sizes, shape, _torch_type(dtype)
        self.register_buffer("start", torch.from_numpy(np.array(start, np.int64)))

    def forward(self, raw: Tensor) -> Tensor:
        chosen = [group.argmax(dim=1) for group in torch.split(raw, self._sizes, dim=1)]
        start: Tensor = self.start  # type: ignore[assignment]
        found = torch.stack(chosen, dim=1) + start
        return found.reshape(raw.shape[0], *self._shape).to(self._dtype)


class _SignActions(nn.Module):
    """1 where an output is above 0."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self._shape = shape

    def forward(self, raw: Tensor) -> Tensor:
        return (raw > 0).to(torch.int8).reshape(raw.shape[0], *self._shape)


class _BinActions(nn.Module):
    """The bin of the largest output, in each dimension."""

    def __init__(self, compiled: Any) -> None:
        super().__init__()
        self._shape = compiled.shape
        self.register_buffer("values", torch.from_numpy(compiled.values.copy())[None])

    def forward(self, raw: Tensor) -> Tensor:
        values: Tensor = self.values  # type: ignore[assignment]
        best = raw.reshape(raw.shape[0], values.shape[1], values.shape[2]).argmax(dim=2, keepdim=True)
        chosen = torch.gather(values.expand(raw.shape[0], -1, -1), 2, best)
        return chosen.reshape(raw.shape[0], *self._shape)


class _BoundedActions(nn.Module):
    """Numbers within the bounds of a Box."""

    def __init__(self, compiled: Any) -> None:
        super().__init__()
        self._shape, self._dtype = compiled.shape, _torch_type(compiled.dtype)
        self._inner, self._whole = _torch_type(compiled.inner), compiled.whole
        self._maps = sorted(compiled.maps)
        parts = {name: getattr(compiled, name) for name in ("low", "high", "middle", "half")}
        parts |= {f"is_{name}": compiled.maps[name] for name in self._maps}
        for name, part in parts.items():
            self.register_buffer(f"{name}_of", torch.from_numpy(np.array(part)))

    def forward(self, raw: Tensor) -> Tensor:
        shape = (raw.shape[0], *self._shape)
        held: Any = self  # whose buffers end in _of: `half` is a method of modules
        mapped = raw
        for name in self._maps:
            squashed = held.middle_of + held.half_of * _SQUASHED[name](raw)
            mapped = torch.where(getattr(self, f"is_{name}_of"), squashed, mapped)
        bounded = torch.minimum(torch.maximum(mapped.to(self._inner), held.low_of), held.high_of)
        actions = torch.round(bounded) if self._whole else bounded
        return actions.to(self._dtype).reshape(shape)


_SQUASHED: dict[str, Callable[[Tensor], Tensor]] = {
    "rescale": lambda raw: raw.clip(-1, 1),
    "tanh": torch.tanh,
    "sigmoid": lambda raw: torch.tanh(raw / 2),
}


def _torch_type(dtype: Any) -> torch.dtype:
    return torch.from_numpy(np.zeros(1, dtype)).dtype
