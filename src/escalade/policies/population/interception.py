"""Low-rank perturbations of any module, by intercepting its calls of torch; its code stays unchanged.

Within :class:`Intercept`, a module holds the center's matrices. A torch call with one of these matrices is
replaced by one that adds the correction of its factors. A call without such a form gets the full matrix,
which is exact too, but slow. Under ``torch.func.vmap`` the factors are those of many members, and a single
product with the center serves them all.
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
    """Scaled perturbation of a matrix, ``a @ b.T``, with shapes (m, r) and (n, r)."""

    a: Tensor
    b: Tensor
    name: str
    """Name of the parameter."""

    @property
    def transposed(self) -> Factors:
        """Factors of the transposed matrix."""
        return Factors(self.b, self.a, self.name)

    def full(self, center: Tensor) -> Tensor:
        """Return the member's matrix, in the shape of the center's."""
        return center + (self.a @ self.b.mT).reshape(center.shape)


class Intercept(TorchFunctionMode):
    """Intercepts every torch call with a matrix that has factors.

    Args:
        matrices: the center's matrices by name.
        factors: their perturbations by the same names; see :class:`Factors`.
    """

    def __init__(
        self,
        matrices: Mapping[str, Tensor],
        factors: Mapping[str, tuple[Tensor, Tensor]],
    ) -> None:
        super().__init__()
        # Tensors are stored with their factors, because an id is valid only as long as its object lives.
        self._known = {
            id(matrices[name]): (matrices[name], Factors(a, b, name)) for name, (a, b) in factors.items()
        }
        self.written: dict[str, str] = {}
        """Names of parameters that were computed in full, with the function that needed each."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        keywords = dict(kwargs or {})
        if func in _COMPOSITE:
            with self:
                found = _COMPOSITE[func](*args, **keywords)
            if found is not NotImplemented:
                return found
        if func not in _PROPERTIES and self._takes_known(args, keywords):
            if func in _VIEWS and args:  # calls with keywords only are rare
                return self._view(func, args, keywords)
            found = (
                _FACTORED[func](self._factors_of, *args, **keywords) if func in _FACTORED else NotImplemented
            )
            if found is not NotImplemented:
                return found
            args, keywords = self._written_out(args, func), self._written_out(keywords, func)
        if func in _SLOW:
            return _SLOW[func](func, *args, **keywords)
        return func(*args, **keywords)

    def _factors_of(self, value: Any) -> Factors | None:
        """Return the factors of a center's matrix, or None for any other value."""
        known = self._known.get(id(value))
        return None if known is None else known[1]

    def _takes_known(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return any(
            id(part) in self._known
            for value in (*args, *kwargs.values())
            for part in (pytree.tree_leaves(value) if isinstance(value, list | tuple | dict) else [value])
        )

    def _view(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return a view of a center's matrix, and register the matching view of its factors."""
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
            return factors.full(center)

        return pytree.tree_map(own, values)


def _transposed(
    factors: Factors, *dims: int, dim0: int | None = None, dim1: int | None = None
) -> Factors | None:
    order = dims or ((dim0, dim1) if dim0 is not None else (0, 1))
    return factors.transposed if {axis % 2 for axis in order if axis is not None} == {0, 1} else None


def _chunks(factors: Factors, chunks: int, dim: int = 0) -> list[Factors] | None:
    return _rows(factors, torch.chunk(factors.a, chunks), dim)


def _splits(factors: Factors, split_size: int | list[int], dim: int = 0) -> list[Factors] | None:
    return _rows(factors, torch.split(factors.a, split_size), dim)


def _rows(factors: Factors, parts: tuple[Tensor, ...], dim: int) -> list[Factors] | None:
    return [factors._replace(a=part) for part in parts] if dim % 2 == 0 else None


def _undispatched(function: Any) -> Callable[..., Any]:
    """Return a copy of a torch.nn.functional function that is not intercepted, while its inner calls are."""
    checks = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
    patched = dict.fromkeys(checks, _false)
    copy = FunctionType(
        function.__code__, function.__globals__ | patched, function.__name__, function.__defaults__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _false(*arguments: Any) -> bool:
    return False


def _getter(name: str) -> Any:
    """Return torch's function for reading an attribute of a tensor."""
    return getattr(Tensor, name).__get__


_PROPERTIES: Final = {
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
"""Properties that a member's matrix shares with the center's."""

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

_SLOW: Final[dict[Any, Callable[..., Any]]] = {
    nn.functional.layer_norm: factored.layer_norm,
    nn.functional.scaled_dot_product_attention: factored.attention,
}
"""Calls for which torch.func's own rule is slow."""

_COMPOSITE: Final[dict[Any, Callable[..., Any]]] = {
    nn.functional.multi_head_attention_forward: _undispatched(nn.functional.multi_head_attention_forward),
    torch.lstm: recurrence.lstm,
    torch.gru: recurrence.gru,
    torch.lstm_cell: recurrence.lstm_cell,
    torch.gru_cell: recurrence.gru_cell,
}
"""Calls that are replaced by several calls, which are intercepted in turn."""
