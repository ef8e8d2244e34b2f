"""Any module with perturbations of low rank: its calls of torch are met on the way, its code stays as it is.

Within :class:`Intercept`, a module holds the centre's matrices. A call of torch that takes one of them is
replaced by one that adds the correction of its factors; a call that has no such form gets the matrix written
out, which is exact as well, and slow. Under ``torch.func.vmap`` the factors are those of many members, and
the product with the centre is one for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from escalade.policies.population import factored, recurrence


class Factors(NamedTuple):
    """The perturbation of a matrix, ``a @ b.T``: of shapes (m, r) and (n, r), scaled."""

    a: Tensor
    b: Tensor
    name: str
    """Name of the parameter."""

    @property
    def turned(self) -> Factors:
        """Factors of the transposed matrix."""
        return Factors(self.b, self.a, self.name)

    def written(self, center: Tensor) -> Tensor:
        """The member's own matrix, in the shape of the centre's."""
        return center + (self.a @ self.b.mT).reshape(center.shape)


class Intercept(TorchFunctionMode):
    """Meets every call of torch that takes a matrix with factors.

    Args:
        matrices: the centre's, by name.
        factors: a perturbation of each, by the same name; see :class:`Factors`.
    """

    def __init__(
        self,
        matrices: Mapping[str, Tensor],
        factors: Mapping[str, tuple[Tensor, Tensor]],
    ) -> None:
        super().__init__()
        # Tensors are kept beside their factors: an id names an object only while it lives.
        self._known = {
            id(matrices[name]): (matrices[name], Factors(a, b, name)) for name, (a, b) in factors.items()
        }
        self.written: dict[str, str] = {}
        """Names of parameters that were written out, each with the function that asked for it."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if func in _COMPOSITE:
            with self:
                found = _COMPOSITE[func](*args, **given)
            if found is not NotImplemented:
                return found
        if func not in _FACTS and self._takes_known(args, given):
            if func in _VIEWS and args:  # not by keywords alone, which is rare
                return self._view(func, args, given)
            found = _FACTORED[func](self._factors_of, *args, **given) if func in _FACTORED else NotImplemented
            if found is not NotImplemented:
                return found
            args, given = self._written_out(args, func), self._written_out(given, func)
        if func in _SPREAD:
            return _SPREAD[func](func, *args, **given)
        return func(*args, **given)

    def _factors_of(self, value: Any) -> Factors | None:
        """The factors of a tensor that holds a centre's matrix; None of anything else."""
        known = self._known.get(id(value))
        return None if known is None else known[1]

    def _takes_known(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return any(
            id(part) in self._known
            for value in (*args, *kwargs.values())
            for part in (pytree.tree_leaves(value) if isinstance(value, list | tuple | dict) else [value])
        )

    def _view(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A view of a centre's matrix, which has the matching view of the factors."""
        center = args[0]
        factors = self._factors_of(center)
        made = None if factors is None or center.ndim != 2 else _VIEWS[func](factors, *args[1:], **kwargs)
        if made is None:
            return func(*self._written_out(args, func), **kwargs)
        views = func(*args, **kwargs)
        several = isinstance(made, list)
        for view, part in zip(views if several else [views], made if several else [made], strict=True):
            self._known[id(view)] = view, part
        return views

    def _written_out(self, values: Any, func: Any) -> Any:
        def own(value: Any) -> Any:
            known = self._known.get(id(value))
            if known is None:
                return value
            center, factors = known
            self.written.setdefault(factors.name, getattr(func, "__name__", str(func)))
            return factors.written(center)

        return pytree.tree_map(own, values)


def _transposed(
    factors: Factors, *dims: int, dim0: int | None = None, dim1: int | None = None
) -> Factors | None:
    order = dims or ((dim0, dim1) if dim0 is not None else (0, 1))
    return factors.turned if {axis % 2 for axis in order if axis is not None} == {0, 1} else None


def _chunks(factors: Factors, chunks: int, dim: int = 0) -> list[Factors] | None:
    return _rows(factors, torch.chunk(factors.a, chunks), dim)


def _splits(factors: Factors, split_size: int | list[int], dim: int = 0) -> list[Factors] | None:
    return _rows(factors, torch.split(factors.a, split_size), dim)


def _rows(factors: Factors, parts: tuple[Tensor, ...], dim: int) -> list[Factors] | None:
    return [factors._replace(a=part) for part in parts] if dim % 2 == 0 else None


def _undispatched(function: Any) -> Callable[..., Any]:
    """A function of torch.nn.functional whose own calls are met, but not itself once more."""
    asked = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
    passed = dict.fromkeys(asked, _no)
    made = FunctionType(
        function.__code__, function.__globals__ | passed, function.__name__, function.__defaults__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _no(*arguments: Any) -> bool:
    return False


def _getter(name: str) -> Any:
    """The function by which torch reads an attribute of a tensor."""
    return getattr(Tensor, name).__get__


_FACTS: Final = {
    _getter(name)
    for name in ("shape", "dtype", "device", "ndim", "requires_grad", "is_leaf", "layout", "is_cuda", "grad")
} | {
    Tensor.size,
    Tensor.dim,
    Tensor.numel,
    Tensor.stride,
    Tensor.__len__,
    Tensor.element_size,
    Tensor.is_contiguous,
}
"""Facts of a matrix that are those of the centre's."""

_VIEWS: Final[dict[Any, Callable[..., Any]]] = {
    Tensor.t: _transposed,
    _getter("T"): _transposed,
    _getter("mT"): _transposed,
    torch.t: _transposed,
    Tensor.transpose: _transposed,
    torch.transpose: _transposed,
    Tensor.chunk: _chunks,
    torch.chunk: _chunks,
    Tensor.split: _splits,
    torch.split: _splits,
}

_FACTORED: Final[dict[Any, Callable[..., Any]]] = {
    nn.functional.linear: factored.linear,
    nn.functional.embedding: factored.embedding,
    torch.conv1d: factored.convolution,
    torch.conv2d: factored.convolution,
    torch.conv3d: factored.convolution,
    torch.matmul: factored.product,
    Tensor.matmul: factored.product,
    Tensor.__matmul__: factored.product,
    torch.mm: factored.product,
    Tensor.mm: factored.product,
    torch.addmm: factored.sum_and_product,
}

_SPREAD: Final[dict[Any, Callable[..., Any]]] = {
    nn.functional.layer_norm: factored.layer_norm,
    nn.functional.scaled_dot_product_attention: factored.attention,
}
"""Calls for which torch.func has a slow rule."""

_COMPOSITE: Final[dict[Any, Callable[..., Any]]] = {
    nn.functional.multi_head_attention_forward: _undispatched(nn.functional.multi_head_attention_forward),
    torch.lstm: recurrence.lstm,
    torch.gru: recurrence.gru,
    torch.lstm_cell: recurrence.lstm_cell,
    torch.gru_cell: recurrence.gru_cell,
}
"""Calls that are made of others, which are met in turn."""
