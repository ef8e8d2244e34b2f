"""Modules that torch lacks, most of them with a state: a policy's memory within an episode.

A stateful module has two methods. ``initial_state(seed)`` returns the state at the start of an episode with
that seed: a tensor, or tuples, lists and dicts of tensors, for one episode, without a batch dimension.
``forward(observations, state)`` returns outputs and the next state for a batch; here every tensor of the
state has the batch as its first dimension. Neither method may store anything in the module itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import shorten
from typing import Any, Final

import torch
from torch import Tensor, nn

from escalade.errors import InputError
from escalade.policies.population.virtual_batch import EPSILON, REFERENCE_FRAMES

State = Any
"""A tensor, or tuples, lists and dicts of tensors."""


def is_stateful(module: nn.Module) -> bool:
    """Return whether the module keeps a state within an episode."""
    return callable(getattr(module, "initial_state", None))


def map_state(function: Callable[[Tensor], Tensor], state: State) -> State:
    """Apply ``function`` to each tensor of a state, and return the same structure."""
    if isinstance(state, dict):
        return {name: map_state(function, state[name]) for name in sorted(state)}
    if isinstance(state, list | tuple):
        parts = [map_state(function, part) for part in state]
        if isinstance(state, list):
            return parts
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    if not isinstance(state, Tensor):
        raise InputError(
            "a policy's state must consist of tensors, or of tuples, lists and dicts of tensors, "
            f"not {type(state).__name__}"
        )
    return function(state)


def tensors_of(state: State) -> list[Tensor]:
    """Return the tensors of a state, always in the same order."""
    found: list[Tensor] = []

    def note(part: Tensor) -> Tensor:
        found.append(part)
        return part

    map_state(note, state)
    return found


def first_states(module: nn.Module, seeds: Sequence[int]) -> State:
    """Return the initial state of a batch of episodes with these seeds."""
    by_seed = {seed: module.initial_state(seed) for seed in set(seeds)}  # type: ignore[operator]
    firsts = [by_seed[seed] for seed in seeds]
    rows = zip(*(tensors_of(first) for first in firsts), strict=True)
    batch = iter([torch.stack([part.detach() for part in parts]) for parts in rows])
    return map_state(lambda _: next(batch), firsts[0])


class Products(nn.Module):
    """Products of pairs of features, without parameters and state.

    See :class:`escalade.policies.population.layers.ProductsOperation`.

    Args:
        features: number of inputs.
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features

    def extra_repr(self) -> str:
        """Return the text between the brackets of ``repr``."""
        return str(self.features)

    def forward(self, x: Tensor) -> Tensor:
        """Return the products, shape (batch, product_count(features)), of ``x``, shape (batch, features).

        Raises:
            InputError: ``x`` has a different number of features.
        """
        if x.shape[-1] != self.features:
            raise InputError(f"{self} expects {self.features} numbers, not {x.shape[-1]}")
        later, earlier = torch.tril_indices(self.features, self.features + 1, 1, device=x.device)
        seen = torch.cat([torch.ones_like(x[..., :1]), x], dim=-1)
        return x[..., later] * seen[..., earlier]


class VirtualBatchNorm(nn.Module):
    """Batch normalization by a fixed batch.

    :class:`escalade.policies.population.virtual_batch.VirtualBatchNormOperation` runs it for many members.

    Its state, mean and 1 / standard deviation of each channel, is constant during an episode.

    Args:
        channels: channels of images (batch, channels, H, W), or length of vectors (batch, channels).
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))

    def measure(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Return the state for a reference batch, two tensors of shape (channels,)."""
        variance, mean = torch.var_mean(seen, [0, *range(2, seen.ndim)], correction=0)
        return mean, torch.rsqrt(variance + EPSILON)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, State]:
        """Return the normalized ``x`` and the unchanged state."""
        shape = (-1, len(self.bias), *([1] * (x.ndim - 2)))
        mean, inverse_std, bias = (part.reshape(shape) for part in (*state, self.bias))
        return (x - mean) * inverse_std + bias, state


_CELLS: Final = (nn.GRUCell, nn.LSTMCell)
_STATEFUL: Final = (*_CELLS, VirtualBatchNorm)


class Chain(nn.Sequential):
    """A sequence of layers, some of which have a state: a stateful ``nn.Sequential``.

    Layers with a state may be ``nn.GRUCell``, ``nn.LSTMCell`` and :class:`VirtualBatchNorm`. The state is a
    tuple with one entry for each of them, in order.

    Args:
        layers: the modules.
        reference_shape: shape of one observation; required for virtual batch normalization. The buffer
            ``reference`` then holds the reference batch of raw observations. The network's input is this
            batch divided by the buffer ``reference_divisor``.

    Raises:
        InputError: virtual batch normalization has no reference shape, or follows a layer with a different
            state; or a layer is an ``nn.RNNCell``, whose state a chain does not carry.
    """

    def __init__(self, *layers: nn.Module, reference_shape: tuple[int, ...] | None = None) -> None:
        super().__init__(*layers)
        if any(isinstance(layer, nn.RNNCell) for layer in layers):
            raise InputError("a Chain does not carry the state of nn.RNNCell; use nn.GRUCell or nn.LSTMCell")
        stateful = [isinstance(layer, VirtualBatchNorm) for layer in layers if isinstance(layer, _STATEFUL)]
        self.reference: Tensor | None
        self.reference_divisor: Tensor
        if not any(stateful):
            self.reference = None
            return
        if reference_shape is None:
            raise InputError("VirtualBatchNorm needs `reference_shape`, the shape of an observation")
        if stateful != sorted(stateful, reverse=True):
            raise InputError("VirtualBatchNorm must come before nn.GRUCell and nn.LSTMCell")
        self.register_buffer(
            "reference", torch.zeros((REFERENCE_FRAMES, *reference_shape), dtype=torch.uint8)
        )
        self.register_buffer("reference_divisor", torch.ones(()))

    def set_reference(self, observations: Tensor, divisor: float) -> None:
        """Set the reference batch, raw observations of shape (frames, *shape)."""
        self.reference = observations.clone()
        self.reference_divisor.fill_(divisor)

    @property
    def reference_seen(self) -> Tensor | None:
        """Reference batch as network input, shape (frames, *shape), or None if there is none."""
        return None if self.reference is None else self.reference.float() / self.reference_divisor

    def initial_state(self, seed: int) -> tuple[State, ...]:
        """Return the state at the start of an episode with this seed."""
        seen: Tensor | None = self.reference_seen
        states: list[State] = []
        for layer in self:
            if isinstance(layer, _CELLS):
                zeros = torch.zeros(layer.hidden_size)
                states.append((zeros, zeros.clone()) if isinstance(layer, nn.LSTMCell) else zeros)
                seen = None  # virtual batch normalization never follows a cell
            elif isinstance(layer, VirtualBatchNorm):
                assert seen is not None
                states.append(layer.measure(seen))
                seen = layer(seen, states[-1])[0]
            elif seen is not None:
                seen = layer(seen)
        return tuple(states)

    def forward(self, observations: Tensor, state: tuple[State, ...]) -> tuple[Tensor, tuple[State, ...]]:  # type: ignore[override]
        """Return the outputs (batch, outputs) and the next state."""
        x, before, after = observations, iter(state), []
        for layer in self:
            if not isinstance(layer, _STATEFUL):
                x = layer(x)
                continue
            new = layer(x, next(before))
            if isinstance(layer, VirtualBatchNorm):
                x, new = new
            else:
                x = new[0] if isinstance(layer, nn.LSTMCell) else new
            after.append(new)
        return x, tuple(after)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        saved = state_dict.get(prefix + "reference")
        if self.reference is not None and isinstance(saved, Tensor) and saved.shape == self.reference.shape:
            self.reference = torch.empty_like(saved)  # with the type of the environment's observations
        super()._load_from_state_dict(state_dict, prefix, *rest)


def layers_of(module: nn.Module) -> list[str]:
    """Return the class names of a module and of its submodules, in torch's order.

    Lazy modules are listed as the modules that their first call turns them into.
    """
    return [type(part).__name__.removeprefix("Lazy") for part in module.modules()]


def check_layers(module: nn.Module, trained: Sequence[str] | None) -> None:
    """Compare a module with the :func:`layers_of` the trained one, if they are known.

    Raises:
        InputError: the classes differ, so that the same weights would be a different policy.
    """
    found = layers_of(module)
    if trained is not None and found != list(trained):
        raise InputError(
            f"the trained module consists of {_shortened(trained)}, but `network` of {_shortened(found)}; "
            "pass a module with the same layers"
        )


def _shortened(layers: Sequence[str]) -> str:
    return shorten(", ".join(layers), 300, placeholder=" ...")
