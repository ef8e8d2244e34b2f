"""Which of a module's parameters evolve, and how they lie in a flat vector."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from escalade.errors import InputError

Vector = NDArray[np.float32]
M = TypeVar("M", bound=nn.Module)


class Layout:
    """The parameters of a module that evolve: those with ``requires_grad``, tied ones once.

    They lie in the vector in the order of ``named_parameters()``. The vector is float32 whatever
    the parameters are: each member is cast as it is written into the module.

    Raises:
        InputError: nothing can be evolved, or a parameter cannot; the message names it.
    """

    def __init__(self, module: nn.Module) -> None:
        if not isinstance(module, nn.Module):
            raise InputError(f"module must be a torch.nn.Module, not a {type(module).__name__}")
        kind = type(module).__name__
        parameters = dict(module.named_parameters())
        if not parameters:
            raise InputError(f"module {kind} has no parameters to evolve")
        evolved = {name: part for name, part in parameters.items() if part.requires_grad}
        if not evolved:
            raise InputError(
                f"module {kind} has only frozen parameters: call requires_grad_() on those to evolve"
            )
        for name, part in evolved.items():
            _refuse_unusable(name, part)
        self.shapes = {name: part.shape for name, part in evolved.items()}
        self.types = {name: (part.dtype, part.device) for name, part in evolved.items()}
        self.dimension = sum(shape.numel() for shape in self.shapes.values())

    def to_vector(self, module: nn.Module) -> Vector:
        """The module's evolved parameters, shape (dimension,)."""
        parts = [part.detach().to("cpu", torch.float32).reshape(-1) for part in self._parts(module)]
        return np.asarray(torch.cat(parts).numpy())

    def writer(self, module: nn.Module) -> Callable[[Vector], None]:
        """What writes a vector, shape (dimension,), into the module's parameters in place."""
        parts, shapes = self._parts(module), list(self.shapes.values())
        sizes = [shape.numel() for shape in shapes]

        def write(vector: Vector) -> None:
            with torch.no_grad():
                pieces = torch.split(torch.from_numpy(vector), sizes)
                for part, piece, shape in zip(parts, pieces, shapes, strict=True):
                    part.copy_(piece.view(shape))

        return write

    def stack(self, members: Vector) -> dict[str, Tensor]:
        """Rows of parameters, shape (n, dimension), as what ``torch.func`` takes: names to (n, ...)."""
        sizes = [shape.numel() for shape in self.shapes.values()]
        pieces = torch.split(torch.from_numpy(members), sizes, dim=1)
        return {
            name: piece.reshape(len(members), *shape).to(
                dtype=self.types[name][0], device=self.types[name][1]
            )
            for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)
        }

    def _parts(self, module: nn.Module) -> list[Tensor]:
        parameters = dict(module.named_parameters())
        return [parameters[name] for name in self.shapes]


def copy_module(module: M) -> M:
    """A module of one's own, tied parameters still tied.

    Raises:
        InputError: it cannot be copied.
    """
    try:
        return copy.deepcopy(module)
    except Exception as problem:
        raise InputError(f"module {type(module).__name__} cannot be copied: {problem}") from problem


def _refuse_unusable(name: str, part: Tensor) -> None:
    if isinstance(part, UninitializedParameter):
        raise InputError(f"parameter {name!r} has no shape yet: run one forward pass before evolving")
    if part.device.type == "meta":
        raise InputError(f"parameter {name!r} is on the meta device and has no numbers: initialise it first")
    if not part.dtype.is_floating_point:
        raise InputError(
            f"parameter {name!r} is {part.dtype}: only real floating point evolves, so freeze it"
        )
    if not math.isfinite(float(part.detach().float().sum())) and not bool(part.detach().isfinite().all()):
        raise InputError(f"parameter {name!r} holds NaN or infinity: initialise it first")
