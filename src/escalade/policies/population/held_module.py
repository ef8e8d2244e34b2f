"""A module that holds a generation's center, or one of its members."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import torch
from torch import nn

from escalade.perturbation import LowRank, NoiseSource, Population
from escalade.perturbation.device import DeviceNoise
from escalade.perturbation.factors import member_pieces
from escalade.policies.population.layout import Layout, Vector


class HeldModule:
    """A module for members' parameters, with the outcome of calling it for many members at once.

    Args:
        module: written to and called; it must not be used elsewhere.
        layout: the evolved parameters.
        source: the members' noise.
    """

    def __init__(self, module: nn.Module, layout: Layout, source: NoiseSource | None) -> None:
        self.module, self.layout = module, layout
        self.matrices = dict(module.named_parameters())
        self.source = source if isinstance(source, LowRank) and source.rank else None
        self.room: Callable[..., Any] = source.room if isinstance(source, DeviceNoise) else _room
        self.write = layout.writer(module)
        """Function that writes a vector of parameters into the module."""
        self._center: Vector | None = None
        self.probed = False
        """True after outputs of a joint call have been compared with those of the module itself."""
        self.one_at_a_time: str | None = None
        """The reason for calling members one at a time, or None for joint calls."""
        self.refused: set[Hashable] = set()
        """Calls that vmap does not support, for any parameters."""
        self._warned: set[str] = set()
        _flatten_recurrent_weights(module)

    def begin(self, center: Vector) -> None:
        """Write a generation's center, shape (dimension,), into the module; keep a reference to it."""
        self._center = center
        self.write(center)

    def write_member(self, population: Population, member: int) -> None:
        """Write a member's parameters into the module."""
        self.write(member_pieces(population, member))

    @property
    def center(self) -> Vector:
        """The parameters that the module holds between calls."""
        return self.layout.to_vector(self.module) if self._center is None else self._center

    def call_one_at_a_time(self, reason: str) -> None:
        """Call members one at a time from now on."""
        self.one_at_a_time = reason
        self.warn_one_at_a_time(reason)

    def warn_one_at_a_time(self, reason: str) -> None:
        """Warn once that members are called one at a time."""
        kind = type(self.module).__name__
        self._warn_once(f"members of {kind} are called one at a time, which is slow: {reason}")

    def warn_written_out(self, written: Mapping[str, str]) -> None:
        """Warn once about each parameter that had to be computed in full, because a function needs it."""
        for name, function in written.items():
            self._warn_once(
                f"parameter {name!r} is computed in full for every member, which is slow: {function} needs it"
            )

    def _warn_once(self, what: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            warnings.warn(what, stacklevel=2)


def _flatten_recurrent_weights(module: nn.Module) -> None:
    """Place the weights of recurrent layers contiguously, as a GPU needs them, once and for all.

    Members are written into them in place, so the weights stay contiguous. The weights of a batch of members
    have no memory of their own that torch could flatten.
    """
    for part in nn.Module.modules(module):
        if isinstance(part, nn.RNNBase) and "flatten_parameters" not in vars(part):
            part.flatten_parameters()
            part.flatten_parameters = _do_nothing  # type: ignore[method-assign]


def _do_nothing() -> None:
    """Replace ``flatten_parameters``; a function of this module, so that the network can be pickled."""


def _room(*shape: int) -> Any:
    """Return an array with the memory alignment of torch's tensors, because kernels may depend on it."""
    return torch.empty(shape, dtype=torch.float32, device="cpu").numpy()
