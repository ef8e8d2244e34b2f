"""The parameters of a population of any module: a row a member, in blocks that are one call of torch.func."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from escalade.perturbation import LowRank, NoiseSource, Population
from escalade.perturbation.factors import member_of
from escalade.policies.population.interception import Intercept
from escalade.policies.population.layout import Layout, Vector


class MemberParameters:
    """Every member's parameters; with noise of low rank, the factors of its matrices, and all others.

    The module then holds the centre's matrices.

    Args:
        module: what is called.
        layout: its parameters' places in a flat vector.
        source: the members' noise.
        rows: members, a multiple of ``block``.
        block: members in a call.
    """

    def __init__(
        self, module: nn.Module, layout: Layout, source: NoiseSource | None, rows: int, block: int
    ) -> None:
        self._module, self._layout = module, layout
        self._source = source if isinstance(source, LowRank) else None
        self._write = layout.writer(module)
        self._matrices = dict(module.named_parameters())
        length = layout.dimension if self._source is None else self._source.length
        self._flat: Vector = np.zeros((rows, length), dtype=np.float32)
        self._blocks = [self._parts(part) for part in torch.split(torch.from_numpy(self._flat), block)]
        self._single = torch.zeros(length, device="cpu")
        self._member = self._parts(self._single)

    def begin(self, center: Vector | None) -> None:
        """Begin a generation of members around ``center``, whose matrices they may share."""
        if self._source is not None and center is not None:
            self._write(center)

    def load(self, row: int, population: Population, member: int) -> None:
        """Give ``row`` the parameters of ``member``."""
        numbers = self._flat[row]
        if self._source is None:
            population.write(member, numbers)
            return
        given = member_of(self._source, population, member)
        for part in self._source.parts:
            if part.rank:
                for held, factor in zip(part.factors(numbers), given.factors(part), strict=True):
                    held[:] = factor
            else:
                given.write(part, part.numbers(numbers))

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move the given rows, in order, to the front."""
        self._flat[: len(rows)] = self._flat[rows]

    def block(self, number: int) -> Any:
        """A block's members: tensors with a leading axis, for ``torch.func.vmap``."""
        return self._blocks[number]

    def row(self, row: int) -> Any:
        """One member, in memory that lies the same way for all: kernels may choose their way by that."""
        self._single.copy_(torch.from_numpy(self._flat[row]))
        return self._member

    def call(self, parameters: Any, buffers: dict[str, Tensor], inputs: tuple[Any, ...]) -> Any:
        """The module's outputs with one member's parameters: of :meth:`row`, or of a block within vmap."""
        own, factors = parameters
        shared = nullcontext() if self._source is None else Intercept(self._matrices, factors)
        with shared:
            return functional_call(self._module, (own, buffers), inputs)

    def _parts(self, numbers: Any) -> Any:
        """Rows of numbers, shape (..., length), as the parameters and the factors of matrices, by name."""
        if self._source is None:
            return self._layout.views(numbers), {}
        own, factors = {}, {}
        for parameter, part in zip(self._layout.parts, self._source.parts, strict=True):
            if part.rank:
                a, b = part.factors(numbers)
                factors[parameter.name] = a.mT, b.mT
            else:
                values: Any = part.numbers(numbers)
                own[parameter.name] = parameter.view(values)
        return own, factors
