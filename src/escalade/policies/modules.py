"""Modules that torch lacks; most have a state, which is what a policy remembers within an episode.

A stateful module has two methods. ``initial_state(seed)`` gives what an episode with that seed begins
with: a tensor, or tuples, lists and dicts of tensors, of one episode, without a batch dimension.
``forward(observations, state)`` gives outputs and the next state, for a batch: every tensor of the state
has the batch as its first dimension there. Neither may keep anything in the module itself.
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
    """The same structure, named tuples too, with ``function`` of each tensor."""
    if isinstance(state, dict):
        return {name: map_state(function, state[name]) for name in sorted(state)}
    if isinstance(state, list | tuple):
        parts = [map_state(function, part) for part in state]
        if isinstance(state, list):
            return parts
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    if not isinstance(state, Tensor):
        raise InputError(
            "a policy's state must be tensors, or tuples, lists and dicts of them, "
            f"not {type(state).__name__}"
        )
    return function(state)


def tensors_of(state: State) -> list[Tensor]:
    """The tensors of a state, always in one order."""
    found: list[Tensor] = []

    def note(part: Tensor) -> Tensor:
        found.append(part)
        return part

    map_state(note, state)
    return found


def first_states(module: nn.Module, seeds: Sequence[int]) -> State:
    """The state of a batch whose episodes begin, with these seeds."""
    made = {seed: module.initial_state(seed) for seed in set(seeds)}  # type: ignore[operator]
    firsts = [made[seed] for seed in seeds]
    rows = zip(*(tensors_of(first) for first in firsts), strict=True)
    batch = iter([torch.stack([part.detach() for part in parts]) for parts in rows])
    return map_state(lambda _: next(batch), firsts[0])


class Products(nn.Module):
    """Products of pairs, without parameters and state.

    See :class:`escalade.policies.population.layers.ProductsOperation`.

    Args:
        features: numbers it takes.
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features

    def extra_repr(self) -> str:
        """Return the text in the brackets where it is printed."""
        return str(self.features)

    def forward(self, x: Tensor) -> Tensor:
        """Features ``x``, shape (batch, features), to products, shape (batch, product_count(features)).

        Raises:
            InputError: it is given another number of features.
        """
        if x.shape[-1] != self.features:
            raise InputError(f"{self} takes {self.features} numbers, but is given {x.shape[-1]}")
        later, earlier = torch.tril_indices(self.features, self.features + 1, 1, device=x.device)
        seen = torch.cat([torch.ones_like(x[..., :1]), x], dim=-1)
        return x[..., later] * seen[..., earlier]


class VirtualBatchNorm(nn.Module):
    """Batch normalisation by a fixed batch.

    :class:`escalade.policies.population.virtual_batch.VirtualBatchNormOperation` runs it for many members.

    Its state, mean and 1 / standard deviation of each channel, stays the same through an episode.

    Args:
        channels: of images (batch, channels, H, W), or the length of vectors (batch, channels).
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))

    def measure(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """The state that a reference batch gives, shape (channels,) each."""
        variance, mean = torch.var_mean(seen, [0, *range(2, seen.ndim)], correction=0)
        return mean, torch.rsqrt(variance + EPSILON)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, State]:
        """Normalised ``x``, and the same state."""
        shape = (-1, len(self.bias), *([1] * (x.ndim - 2)))
        mean, inverse_std, bias = (part.reshape(shape) for part in (*state, self.bias))
        return (x - mean) * inverse_std + bias, state


_CELLS: Final = (nn.GRUCell, nn.LSTMCell)
_STATEFUL: Final = (*_CELLS, VirtualBatchNorm)


class Chain(nn.Sequential):
    """Layers one after the other, some of them with state: a stateful module.

    Those with state may be ``nn.GRUCell``, ``nn.LSTMCell`` and :class:`VirtualBatchNorm`. The state is a
    tuple with an entry for each of them, in order.

    Args:
        layers: the modules.
        reference_shape: shape of one observation, where there is virtual batch normalisation: the buffer
            ``reference`` then holds the reference batch, as the environment gives it, and the network
            sees it divided by the buffer ``reference_divisor``.

    Raises:
        InputError: virtual batch normalisation has no reference shape, or stands behind another state; or a
            layer is an ``nn.RNNCell``, whose state a chain does not keep.
    """

    def __init__(self, *layers: nn.Module, reference_shape: tuple[int, ...] | None = None) -> None:
        super().__init__(*layers)
        if any(isinstance(layer, nn.RNNCell) for layer in layers):
            raise InputError("a Chain does not keep the state of nn.RNNCell: use nn.GRUCell or nn.LSTMCell")
        stateful = [isinstance(layer, VirtualBatchNorm) for layer in layers if isinstance(layer, _STATEFUL)]
        self.reference: Tensor | None
        self.reference_divisor: Tensor
        if not any(stateful):
            self.reference = None
            return
        if reference_shape is None:
            raise InputError("VirtualBatchNorm needs `reference_shape`, the shape of an observation")
        if stateful != sorted(stateful, reverse=True):
            raise InputError("VirtualBatchNorm must stand before layers with another state")
        self.register_buffer(
            "reference", torch.zeros((REFERENCE_FRAMES, *reference_shape), dtype=torch.uint8)
        )
        self.register_buffer("reference_divisor", torch.ones(()))

    def set_reference(self, observations: Tensor, divisor: float) -> None:
        """Take over a reference batch, as the environment gives observations: (frames, *shape)."""
        self.reference = observations.clone()
        self.reference_divisor.fill_(divisor)

    @property
    def reference_seen(self) -> Tensor | None:
        """The reference batch as the network sees it, (frames, *shape); None where there is none."""
        return None if self.reference is None else self.reference.float() / self.reference_divisor

    def initial_state(self, seed: int) -> tuple[State, ...]:
        """Return the state that an episode with this seed begins with."""
        seen: Tensor | None = self.reference_seen
        states: list[State] = []
        for layer in self:
            if isinstance(layer, _CELLS):
                zeros = torch.zeros(layer.hidden_size)
                states.append((zeros, zeros.clone()) if isinstance(layer, nn.LSTMCell) else zeros)
                seen = None  # no virtual batch normalisation stands behind these
            elif isinstance(layer, VirtualBatchNorm):
                assert seen is not None
                states.append(layer.measure(seen))
                seen = layer(seen, states[-1])[0]
            elif seen is not None:
                seen = layer(seen)
        return tuple(states)

    def forward(self, observations: Tensor, state: tuple[State, ...]) -> tuple[Tensor, tuple[State, ...]]:  # type: ignore[override]
        """Outputs (batch, outputs) and the next state."""
        x, before, after = observations, iter(state), []
        for layer in self:
            if not isinstance(layer, _STATEFUL):
                x = layer(x)
                continue
            kept = layer(x, next(before))
            if isinstance(layer, VirtualBatchNorm):
                x, kept = kept
            else:
                x = kept[0] if isinstance(layer, nn.LSTMCell) else kept
            after.append(kept)
        return x, tuple(after)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        saved = state_dict.get(prefix + "reference")
        if self.reference is not None and isinstance(saved, Tensor) and saved.shape == self.reference.shape:
            self.reference = torch.empty_like(saved)  # of the type that the environment's observations have
        super()._load_from_state_dict(state_dict, prefix, *rest)


def layers_of(module: nn.Module) -> list[str]:
    """The names of the classes of a module and of its parts, in the order that torch has them.

    Torch's lazy ones count as what their first call makes of them.
    """
    return [type(part).__name__.removeprefix("Lazy") for part in module.modules()]


def check_layers(module: nn.Module, trained: Sequence[str] | None) -> None:
    """Compare a module with the :func:`layers_of` the one that was trained, where those are known.

    Raises:
        InputError: it is of other classes: with the same weights it would be another policy.
    """
    found = layers_of(module)
    if trained is not None and found != list(trained):
        raise InputError(
            f"a module of {_said(trained)} was trained, and `network` is one of {_said(found)}: "
            "give one like it"
        )


def _said(layers: Sequence[str]) -> str:
    return shorten(", ".join(layers), 300, placeholder=" ...")
