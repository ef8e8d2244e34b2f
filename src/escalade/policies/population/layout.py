"""The evolved parameters of a module, and their positions in a flat vector."""

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
    """One evolved parameter, a slice of the flat vector."""

    name: str
    shape: torch.Size
    dtype: torch.dtype
    device: torch.device
    transposed: bool
    """True if the vector holds the matrix transposed."""

    def view(self, flat: Tensor) -> Tensor:
        """Return a view of the vector's numbers, shape (..., size), in the parameter's shape."""
        if self.transposed:
            return flat.view(flat.shape[:-1] + self.shape[::-1]).transpose(-1, -2)
        return flat.view(flat.shape[:-1] + self.shape)

    def flat(self, parameter: Tensor) -> Tensor:
        """Return a parameter's numbers in the vector's order, shape (size,), float32, on the CPU."""
        values = parameter.detach().to("cpu", torch.float32)
        return (values.T if self.transposed else values).reshape(-1)


class Layout:
    """The evolved parameters of a module: those with ``requires_grad``, tied ones once.

    The vector holds them in the order of ``named_parameters()``. It is always float32; each member is cast to
    the parameters' types when it is written into the module.

    Args:
        module: the module.
        transposed: names of matrices that the vector holds transposed.

    Raises:
        InputError: the module has no parameters to evolve, or one that cannot evolve; the message names it.
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
                f"module {kind} has only frozen parameters; call requires_grad_() on those to evolve"
            )
        for name, part in evolved.items():
            _check_usable(name, part)
        self.parts = tuple(
            EvolvedParameter(name, part.shape, part.dtype, part.device, name in transposed)
            for name, part in evolved.items()
        )
        self.sizes = [part.shape.numel() for part in self.parts]
        self.dimension = sum(self.sizes)

    @property
    def shapes(self) -> dict[str, torch.Size]:
        """Shapes of the evolved parameters by name, in order."""
        return {part.name: part.shape for part in self.parts}

    @property
    def held_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the evolved parameters as the vector holds them, in order."""
        return tuple(tuple(part.shape[::-1] if part.transposed else part.shape) for part in self.parts)

    def without_numbers(self, module: M) -> M:
        """Return the module for a process that writes all parameters; many parameters lose their numbers."""
        if 4 * self.dimension < LARGE:
            return module
        tensors = {id(tensor): tensor for tensor in [*module.parameters(), *module.buffers()]}
        plain = [part for part in self._parameters(module) if type(part) is nn.Parameter]
        return _copied(module, tensors | {id(part): _empty(part, "meta") for part in plain})

    def with_room(self, module: M) -> M:
        """Copy a module, and allocate memory for parameters without numbers."""
        devices = {part.name: part.device for part in self.parts}
        bare = {name: part for name, part in module.named_parameters() if part.device.type == "meta"}
        return _copied(module, {id(part): _empty(part, devices[name]) for name, part in bare.items()})

    def to_vector(self, module: nn.Module) -> Vector:
        """Return a copy of the module's evolved parameters, shape (dimension,)."""
        pairs = zip(self.parts, self._parameters(module), strict=True)
        return np.asarray(torch.cat([part.flat(parameter) for part, parameter in pairs]).numpy())

    def writer(self, module: nn.Module) -> Callable[[Vector | Tensor | Iterator[Vector]], None]:
        """Return a function that writes vectors, shape (dimension,), into the module's parameters in place.

        A vector may come in pieces of whole parameters, so that a large one is never in memory as a whole.
        """
        parameters, dimension = self._parameters(module), self.dimension

        def write(vector: Vector | Tensor | Iterator[Vector]) -> None:
            if not isinstance(vector, Iterator) and len(vector) != dimension:
                raise InputError(f"a vector has {len(vector)} numbers, but the module {dimension} to evolve")
            places = zip(self.parts, self.sizes, parameters, strict=True)
            with torch.no_grad():
                for piece in vector if isinstance(vector, Iterator) else [vector]:
                    rest = tensor_of(piece).to(torch.float32)
                    while len(rest):
                        part, size, parameter = next(places)
                        parameter.copy_(part.view(rest[:size]))
                        rest = rest[size:]
            torch.clear_autocast_cache()  # it holds the old numbers in half precision

        return write

    def views(self, members: Tensor) -> dict[str, Tensor]:
        """Return rows of parameters, shape (..., dimension), as views by name, shape (..., *shape) each."""
        pieces = torch.split(members, self.sizes, dim=-1)
        return {part.name: part.view(piece) for part, piece in zip(self.parts, pieces, strict=True)}

    def stack(self, members: Vector | Tensor) -> dict[str, Tensor]:
        """Convert rows of parameters, shape (n, dimension), for ``torch.func``: names to (n, *shape).

        The tensors have the parameters' types and devices. They share the rows' memory if no conversion is
        needed.
        """
        views = self.views(tensor_of(members))
        return {part.name: views[part.name].to(part.device, part.dtype) for part in self.parts}

    def _parameters(self, module: nn.Module) -> list[Tensor]:
        parameters = dict(module.named_parameters())
        return [parameters[part.name] for part in self.parts]


def copy_module(module: M) -> M:
    """Return a deep copy of the module, in which tied parameters stay tied.

    Raises:
        InputError: the module cannot be copied.
    """
    return _copied(module, {})


def on_cpu(module: M) -> M:
    """Return the module itself if all its parameters and buffers are on the CPU, otherwise a copy there.

    Raises:
        InputError: the module cannot be copied.
    """
    tensors = [*module.parameters(), *module.buffers()]
    return module if all(tensor.device.type == "cpu" for tensor in tensors) else copy_on_cpu(module)


def copy_on_cpu(module: M) -> M:
    """Return a copy of the module with all its parameters and buffers on the CPU.

    Raises:
        InputError: the module cannot be copied.
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
    """Return a copy that uses the tensors in ``known`` for those with these ids."""
    # Pruning and weight norm store the last computed weight as an attribute, which deepcopy rejects as
    # part of a graph. The copy computes its own.
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


def _check_usable(name: str, part: Tensor) -> None:
    if isinstance(part, UninitializedParameter) or part.device.type == "meta":
        raise InputError(f"parameter {name!r} has no numbers yet; run one forward pass before evolving")
    if part.layout != torch.strided or not part.dtype.is_floating_point:
        raise InputError(
            f"parameter {name!r} is {part.dtype} and {part.layout}, but only dense, real floating-point "
            "parameters can evolve; freeze it"
        )
    if not bool(part.detach().isfinite().all()):
        raise InputError(f"parameter {name!r} holds NaN or infinity; initialize it first")
