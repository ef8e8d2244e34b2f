"""The parameters of a population of any module: a row a member, in blocks that are one call of torch.func."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from escalade.perturbation import LowRank, Population
from escalade.perturbation.factors import member_of
from escalade.policies.population.interception import Intercept
from escalade.policies.population.layout import Layout, Vector


class WrittenParameters:
    """Every member's parameters, written out.

    Args:
        module: what is called.
        layout: its parameters' places in a flat vector.
        rows: members, a multiple of ``block``.
        block: members in a call.
    """

    def __init__(self, module: nn.Module, layout: Layout, rows: int, block: int) -> None:
        self._module, self._layout = module, layout
        self._flat: Vector = np.zeros((rows, layout.dimension), dtype=np.float32)
        self._blocks = [layout.views(part) for part in torch.split(torch.from_numpy(self._flat), block)]

    def begin(self, center: Vector | None) -> None:
        """Begin a generation of members around ``center``: they share nothing with it."""

    def load(self, row: int, population: Population, member: int) -> None:
        """Give ``row`` the parameters of ``member``."""
        population.write(member, self._flat[row])

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move the given rows, in order, to the front."""
        self._flat[: len(rows)] = self._flat[rows]

    def block(self, number: int) -> dict[str, Tensor]:
        """A block's members: tensors with a leading axis, for ``torch.func.vmap``."""
        return self._blocks[number]

    @cached_property
    def _single(self) -> tuple[Tensor, dict[str, Tensor]]:
        """Memory for one member's parameters: flat, and by name."""
        flat = torch.zeros(1, self._layout.dimension, device="cpu")
        return flat[0], {name: part[0] for name, part in self._layout.views(flat).items()}

    def row(self, row: int) -> dict[str, Tensor]:
        """One member, in memory that lies the same way for all: kernels may choose their way by that."""
        flat, member = self._single
        flat.copy_(torch.from_numpy(self._flat[row]))
        return member

    def call(self, parameters: Any, buffers: dict[str, Tensor], inputs: tuple[Any, ...]) -> Any:
        """The module's outputs with one member's parameters: of :meth:`row`, or of a block within vmap."""
        return functional_call(self._module, (parameters, buffers), inputs)


class FactoredParameters:
    """The factors of every member's matrices, and its other parameters; the module holds the centre's.

    Its methods are those of :class:`WrittenParameters`.

    Args:
        module: what is called; its matrices are written to.
        layout: its parameters' places in a flat vector.
        source: the members' noise.
        rows: members, a multiple of ``block``.
        block: members in a call.
    """

    def __init__(self, module: nn.Module, layout: Layout, source: LowRank, rows: int, block: int) -> None:
        self._module, self._source, self._block = module, source, block
        self._write = layout.writer(module)
        self._matrices = dict(module.named_parameters())
        self._parts = list(zip(layout.parts, source.parts, strict=True))
        self._own: dict[str, Tensor] = {}
        self._factors: dict[str, tuple[Tensor, Tensor]] = {}
        for part, stretch in self._parts:
            if stretch.rank:
                a, b = (torch.zeros(rows, size, stretch.rank, device="cpu") for size in stretch.shape)
                self._factors[part.name] = a, b
            else:
                self._own[part.name] = torch.zeros(rows, *part.shape, device="cpu")

    def begin(self, center: Vector | None) -> None:
        if center is not None:
            self._write(center)

    def load(self, row: int, population: Population, member: int) -> None:
        given = member_of(self._source, population, member)
        for part, stretch in self._parts:
            if stretch.rank:
                for held, numbers in zip(self._factors[part.name], given.factors(stretch), strict=True):
                    held[row] = torch.from_numpy(numbers).mT
            else:
                given.write(stretch, self._own[part.name][row].numpy().reshape(-1))

    def keep(self, rows: NDArray[np.intp]) -> None:
        places = torch.from_numpy(rows)
        for held in (*self._own.values(), *(part for pair in self._factors.values() for part in pair)):
            held[: len(rows)] = held[places]

    def block(self, number: int) -> Any:
        return self._at(slice(number * self._block, (number + 1) * self._block))

    def row(self, row: int) -> Any:
        own, factors = self._at(row)
        return (
            {name: part.clone() for name, part in own.items()},
            {name: (a.clone(), b.clone()) for name, (a, b) in factors.items()},
        )

    def _at(self, place: Any) -> Any:
        own = {name: part[place] for name, part in self._own.items()}
        return own, {name: (a[place], b[place]) for name, (a, b) in self._factors.items()}

    def call(self, parameters: Any, buffers: dict[str, Tensor], inputs: tuple[Any, ...]) -> Any:
        own, factors = parameters
        with Intercept(self._matrices, factors, agrees=False):
            return functional_call(self._module, (own, buffers), inputs)


MemberParameters = WrittenParameters | FactoredParameters
"""The parameters that some members each have for themselves, and how a module is called with them."""
