"""Parameters of a population of any module: one row per member, in one block per call of torch.func."""

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
    """Every member's parameters; with low-rank noise, the factors of its matrices and all other parameters.

    With low-rank noise the module holds the center's matrices.

    Args:
        module: the module to call.
        layout: positions of its parameters in a flat vector.
        source: the members' noise.
        rows: number of members, a multiple of ``block``.
        block: members per call.
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
        """Load the parameters of ``member`` into ``row``."""
        numbers = self._flat[row]
        if self._source is None:
            population.write(member, numbers)
            return
        perturbed = member_of(self._source, population, member)
        for part in self._source.parts:
            if part.rank:
                for held, factor in zip(part.factors(numbers), perturbed.factors(part), strict=True):
                    held[:] = factor
            else:
                perturbed.write(part, part.numbers(numbers))

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move ``rows``, in order, to the front."""
        self._flat[: len(rows)] = self._flat[rows]

    def block(self, number: int) -> Any:
        """Return a block's members as tensors with a leading axis, for ``torch.func.vmap``."""
        return self._blocks[number]

    def row(self, row: int) -> Any:
        """Return one member, always in the same memory, because kernels may depend on its alignment."""
        self._single.copy_(torch.from_numpy(self._flat[row]))
        return self._member

    def call(self, parameters: Any, buffers: dict[str, Tensor], inputs: tuple[Any, ...]) -> Any:
        """Return the module's outputs for one member's parameters, from :meth:`row` or a block under vmap."""
        own, factors = parameters
        shared = nullcontext() if self._source is None else Intercept(self._matrices, factors)
        with shared:
            return functional_call(self._module, (own, buffers), inputs)

    def _parts(self, numbers: Any) -> Any:
        """Split rows of numbers, shape (..., length), into parameters and factors of matrices, by name."""
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
