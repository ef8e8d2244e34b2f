"""A module that holds a generation's centre, or one of its members."""

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
    """A module that is written to, and what is known of calling it for many members at once.

    Args:
        module: written to and called; of nobody else's.
        layout: which of its parameters evolve.
        source: the members' noise.
    """

    def __init__(self, module: nn.Module, layout: Layout, source: NoiseSource | None) -> None:
        self.module, self.layout = module, layout
        self.matrices = dict(module.named_parameters())
        self.source = source if isinstance(source, LowRank) and source.rank else None
        self.room: Callable[..., Any] = source.room if isinstance(source, DeviceNoise) else _room
        self.write = layout.writer(module)
        """Writes a vector of parameters into the module."""
        self._center: Vector | None = None
        self.probed = False
        """True once members that were called together have been compared with the module."""
        self.one_at_a_time: str | None = None
        """The reason to call members one after the other from now on; None if there is none."""
        self.refused: set[Hashable] = set()
        """Calls that vmap refuses, whatever the members' numbers."""
        self._warned: set[str] = set()
        _lay_out_once(module)

    def begin(self, center: Vector) -> None:
        """Have the module hold a generation's centre, shape (dimension,); it is kept, and not written to."""
        self._center = center
        self.write(center)

    def write_member(self, population: Population, member: int) -> None:
        """Write a member's parameters into the module."""
        self.write(member_pieces(population, member))

    @property
    def center(self) -> Vector:
        """The parameters that the module holds between calls."""
        return self.layout.to_vector(self.module) if self._center is None else self._center

    def give_up(self, why: str) -> None:
        """Call members one after the other from now on."""
        self.one_at_a_time = why
        self.warn_apart(why)

    def warn_apart(self, why: str) -> None:
        """Warn once that members are called one after the other."""
        kind = type(self.module).__name__
        self._warn(f"members of {kind} are called one after the other, which is slow: {why}")

    def warn_written(self, written: Mapping[str, str]) -> None:
        """Warn once of each parameter that a function took for which there is no shorter form."""
        for name, function in written.items():
            self._warn(
                f"parameter {name!r} is written out for every member, which is slow: {function} takes it"
            )

    def _warn(self, what: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            warnings.warn(what, stacklevel=2)


def _lay_out_once(module: nn.Module) -> None:
    """Lay the weights of recurrent layers side by side, as a GPU wants them, now and never again.

    Members are written into them in place, so that they stay so. The weights of a batch of members have no
    memory to lay out, and torch still holds them when the next member is called alone.
    """
    for part in nn.Module.modules(module):
        if isinstance(part, nn.RNNBase) and "flatten_parameters" not in vars(part):
            part.flatten_parameters()
            part.flatten_parameters = _nothing  # type: ignore[method-assign]


def _nothing() -> None:
    """Leave the weights where they are; of this file, so that the module can be pickled."""


def _room(*shape: int) -> Any:
    """An array that lies as torch's tensors do: kernels may choose their way by that."""
    return torch.empty(shape, dtype=torch.float32, device="cpu").numpy()
