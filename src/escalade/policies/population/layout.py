"""The parameters of a module that evolve, and their places in a flat vector."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from escalade.errors import InputError, in_words
from escalade.support.arrays import tensor_of
from escalade.support.shared_memory import LARGE

Vector = NDArray[np.float32]
M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class EvolvedParameter:
    """One evolved parameter: a stretch of the flat vector."""

    name: str
    shape: torch.Size
    dtype: torch.dtype
    device: torch.device
    transposed: bool
    """True where the vector holds the matrix transposed."""

    def view(self, flat: Tensor) -> Tensor:
        """Numbers of the vector, shape (..., size), seen in the parameter's shape, (..., *shape)."""
        if self.transposed:
            return flat.view(flat.shape[:-1] + self.shape[::-1]).transpose(-1, -2)
        return flat.view(flat.shape[:-1] + self.shape)

    def flat(self, parameter: Tensor) -> Tensor:
        """A parameter's numbers as the vector holds them, shape (size,), float32, on the CPU."""
        values = parameter.detach().to("cpu", torch.float32)
        return (values.T if self.transposed else values).reshape(-1)


class Layout:
    """The parameters of a module that evolve: those with ``requires_grad``, tied ones once.

    They lie in the vector in the order of ``named_parameters()``. The vector is float32 whatever
    the parameters are: each member is cast as it is written into the module.

    Args:
        module: whose parameters they are.
        transposed: names of matrices that the vector holds transposed.

    Raises:
        InputError: nothing can be evolved, or a parameter cannot; the message names it.
    """

    def __init__(self, module: nn.Module, transposed: Collection[str] = ()) -> None:
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
        self.parts = tuple(
            EvolvedParameter(name, part.shape, part.dtype, part.device, name in transposed)
            for name, part in evolved.items()
        )
        self.sizes = [part.shape.numel() for part in self.parts]
        self.dimension = sum(self.sizes)

    @property
    def shapes(self) -> dict[str, torch.Size]:
        """The shape of each evolved parameter, by name, in order."""
        return {part.name: part.shape for part in self.parts}

    @property
    def held_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each evolved parameter as the vector holds it, in order."""
        return tuple(tuple(part.shape[::-1] if part.transposed else part.shape) for part in self.parts)

    def without_numbers(self, module: M) -> M:
        """The module for a process that will write all evolved parameters: without their numbers, if many."""
        if 4 * self.dimension < LARGE:
            return module
        tensors = {id(tensor): tensor for tensor in [*module.parameters(), *module.buffers()]}
        plain = [part for part in self._parameters(module) if type(part) is nn.Parameter]
        return _copied(module, tensors | {id(part): _empty(part, "meta") for part in plain})

    def with_room(self, module: M) -> M:
        """A copy of a module, with memory for parameters that came without numbers."""
        devices = {part.name: part.device for part in self.parts}
        bare = {name: part for name, part in module.named_parameters() if part.device.type == "meta"}
        return _copied(module, {id(part): _empty(part, devices[name]) for name, part in bare.items()})

    def to_vector(self, module: nn.Module) -> Vector:
        """The module's evolved parameters, shape (dimension,), in memory of their own."""
        pairs = zip(self.parts, self._parameters(module), strict=True)
        return np.asarray(torch.cat([part.flat(parameter) for part, parameter in pairs]).numpy())

    def writer(self, module: nn.Module) -> Callable[[Vector | Tensor | Iterator[Vector]], None]:
        """Return a writer of vectors, shape (dimension,), into the module's parameters in place.

        A vector may come in pieces, each of whole parameters, so that a large one is never in memory.
        """
        parameters, dimension = self._parameters(module), self.dimension

        def write(vector: Vector | Tensor | Iterator[Vector]) -> None:
            if not isinstance(vector, Iterator) and len(vector) != dimension:
                raise InputError(f"a vector has {len(vector)} numbers, and the module {dimension} to evolve")
            places = zip(self.parts, self.sizes, parameters, strict=True)
            with torch.no_grad():
                for piece in vector if isinstance(vector, Iterator) else [vector]:
                    rest = tensor_of(piece).to(torch.float32)
                    while len(rest):
                        part, size, parameter = next(places)
                        parameter.copy_(part.view(rest[:size]))
                        rest = rest[size:]
            torch.clear_autocast_cache()  # which has what was written over, in half precision

        return write

    def views(self, members: Tensor) -> dict[str, Tensor]:
        """Rows of parameters, shape (..., dimension), seen as the parameters they are: (..., *shape) each."""
        pieces = torch.split(members, self.sizes, dim=-1)
        return {part.name: part.view(piece) for part, piece in zip(self.parts, pieces, strict=True)}

    def stack(self, members: Vector | Tensor) -> dict[str, Tensor]:
        """Rows of parameters, shape (n, dimension), as what ``torch.func`` takes: names to (n, *shape).

        The tensors have the parameters' types and devices. Where those are the rows' own, so is the memory.
        """
        views = self.views(tensor_of(members))
        return {part.name: views[part.name].to(part.device, part.dtype) for part in self.parts}

    def _parameters(self, module: nn.Module) -> list[Tensor]:
        parameters = dict(module.named_parameters())
        return [parameters[part.name] for part in self.parts]


def copy_module(module: M) -> M:
    """A module of one's own, tied parameters still tied.

    Raises:
        InputError: it cannot be copied.
    """
    return _copied(module, {})


def on_cpu(module: M) -> M:
    """The module itself where all its parameters and buffers are on the CPU, and a copy there otherwise.

    Raises:
        InputError: it cannot be copied.
    """
    tensors = [*module.parameters(), *module.buffers()]
    return module if all(tensor.device.type == "cpu" for tensor in tensors) else copy_on_cpu(module)


def copy_on_cpu(module: M) -> M:
    """A copy of the module, with all its parameters and buffers on the CPU.

    Raises:
        InputError: it cannot be copied.
    """
    tensors = [*module.parameters(), *module.buffers()]
    try:
        moved = {id(tensor): _moved(tensor) for tensor in tensors}
    except (RuntimeError, NotImplementedError) as problem:
        raise InputError(f"module {type(module).__name__} cannot be moved to the CPU: {problem}") from problem
    return _copied(module, moved)


def _empty(parameter: Tensor, device: torch.device | str) -> Tensor:
    return nn.Parameter(torch.empty_like(parameter, device=device), parameter.requires_grad)


def _moved(tensor: Tensor) -> Tensor:
    values = tensor.detach().cpu().clone()
    return nn.Parameter(values, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else values


def _copied(module: M, known: dict[int, Tensor]) -> M:
    """A copy that uses ``known`` tensors instead of copies of those with these ids."""
    # Pruning and weight norm leave the last weight they computed as an attribute, which deepcopy
    # refuses as part of a graph; the copy computes its own.
    try:
        computed = {
            id(value): value.detach().cpu().clone()
            for part in nn.Module.modules(module)
            for value in vars(part).values()
            if isinstance(value, Tensor) and not value.is_leaf
        }
        return copy.deepcopy(module, computed | known)
    except Exception as problem:
        raise InputError(f"module {type(module).__name__} cannot be copied: {in_words(problem)}") from problem


def _refuse_unusable(name: str, part: Tensor) -> None:
    if isinstance(part, UninitializedParameter) or part.device.type == "meta":
        raise InputError(f"parameter {name!r} has no numbers yet: run one forward pass before evolving")
    if part.layout != torch.strided or not part.dtype.is_floating_point:
        raise InputError(
            f"parameter {name!r} is {part.dtype} and {part.layout}: only dense, real floating point evolves, "
            "so freeze it"
        )
    if not bool(part.detach().isfinite().all()):
        raise InputError(f"parameter {name!r} holds NaN or infinity: initialise it first")
