"""Torch operations on a matrix plus a product of thin factors, for one member or many.

Each takes ``factors_of``, which returns a tensor's factors or None, and then the arguments of torch's
function. It returns NotImplemented if nothing is faster than computing the full matrix. Under
``torch.func.vmap`` the factors are those of many members, and a single product with the center serves all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn

FactorsOf = Callable[[Any], Any]

_functorch: Final[Any] = torch._C._functorch  # the functions behind torch.func


def linear(
    factors_of: FactorsOf, input: Tensor, weight: Tensor, bias: Tensor | None = None, **others: Any
) -> Any:
    """Compute ``input (weight + a b^T)^T + bias``."""
    factors = factors_of(weight)
    if factors is None or factors_of(input) is not None or others or (bias is not None and bias.ndim > 1):
        return NotImplemented
    return _linear(input, weight, factors.a, factors.b, bias)


def product(factors_of: FactorsOf, *matrices: Any, **others: Any) -> Any:
    """Compute ``input (other + a b^T)``."""
    if len(matrices) != 2 or others:
        return NotImplemented
    input, other = matrices
    factors = factors_of(other)
    if factors is None or factors_of(input) is not None or other.ndim != 2:
        return NotImplemented
    return _linear(input, other.t(), factors.b, factors.a, None)


def sum_and_product(
    factors_of: FactorsOf,
    input: Any,
    mat1: Any,
    mat2: Any,
    *,
    beta: float = 1,
    alpha: float = 1,
    **others: Any,
) -> Any:
    """Compute ``input + mat1 (mat2 + a b^T)``."""
    factors, scaled = factors_of(mat2), (beta, alpha) != (1, 1)
    if factors is None or factors_of(mat1) is not None or scaled or input.ndim != 1 or others:
        return NotImplemented
    return _linear(mat1, mat2.t(), factors.b, factors.a, input)


def embedding(
    factors_of: FactorsOf,
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    *others: Any,
    **named: Any,
) -> Any:
    """Look up rows of ``weight + a b^T``."""
    factors = factors_of(weight)
    if factors is None or max_norm is not None:
        return NotImplemented
    return nn.functional.embedding(input, weight) + nn.functional.embedding(input, factors.a) @ factors.b.mT


def convolution(
    factors_of: FactorsOf,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Convolve with ``weight + a b^T``: ``a`` mixes the outputs of the r filters ``b``."""
    factors = factors_of(weight)
    if factors is None or factors_of(input) is not None:
        return NotImplemented
    call = {3: torch.conv1d, 4: torch.conv2d, 5: torch.conv3d}[weight.ndim]
    settings = (stride, padding, dilation, groups)
    batched = input.ndim == weight.ndim
    images = input if batched else input[None]
    out = call(images, weight, None, *settings)
    rank = factors.b.shape[-1]
    thin = factors.b.mT.reshape(rank, *weight.shape[1:]).repeat(groups, *[1] * (weight.ndim - 1))
    seen = call(images, thin, None, *settings)
    seen = seen.reshape(len(images), groups, rank, prod(seen.shape[2:]))
    mixed = factors.a.reshape(groups, -1, rank) @ seen
    out = out + mixed.reshape(out.shape)
    if bias is not None:
        out = out + bias.reshape(-1, *[1] * (weight.ndim - 2))
    return out if batched else out[0]


def layer_norm(
    func: Any,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Any:
    """Normalize a layer, with weights and biases that may differ between members."""
    found = None if weight is None or bias is None else _Unbatched.of(input, weight, bias)
    if found is None:
        return func(input, normalized_shape, weight, bias, eps)
    x, scale, shift = found.parts
    beside = (found.members, *[1] * (x.ndim - 1 - len(normalized_shape)), *normalized_shape)
    normal = func(x, normalized_shape, None, None, eps)
    return found.wrapped(torch.addcmul(shift.reshape(beside), normal, scale.reshape(beside)))


def attention(
    func: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Compute scaled dot-product attention; under vmap, members become additional heads of one call."""
    named = {"is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    found = None if dropout_p > 0.0 or query.ndim < 3 else _Unbatched.of(query, key, value, attn_mask)
    if found is None:
        return func(query, key, value, attn_mask, dropout_p, **named)
    *parts, mask = found.parts
    if len({(part.ndim, part.shape[1]) for part in parts}) > 1:  # torch's own rule broadcasts them
        return func(query, key, value, attn_mask, dropout_p, **named)
    if mask is not None:
        shape = (*parts[0].shape[1:-1], parts[1].shape[-2])
        mask = mask.reshape(found.members, *[1] * (len(shape) + 1 - mask.ndim), *mask.shape[1:])
        mask = mask.expand(found.members, *shape).reshape(-1, *shape[1:])
    out = func(*(part.reshape(-1, *part.shape[2:]) for part in parts), mask, **named)
    return found.wrapped(out.reshape(found.members, -1, *out.shape[1:]))


def _linear(x: Tensor, weight: Tensor, a: Tensor, b: Tensor, bias: Tensor | None) -> Tensor:
    found = _Unbatched.of(x, a, b, bias)
    if found is None:
        return nn.functional.linear(x, weight, bias) + (x @ b) @ a.mT
    x, a, b, own = found.parts
    (units, features), members = weight.shape, found.members
    rows = x.reshape(members, prod(x.shape[1:-1]), features)
    out = torch.mm(rows.flatten(0, 1), weight.t()).reshape(*rows.shape[:2], units)
    thin, right = torch.bmm(rows, b), a.mT
    if own is not None:  # one more thin factor, whose coefficient is always 1
        thin = torch.cat([thin, thin.new_ones(*thin.shape[:2], 1)], dim=2)
        right = torch.cat([right, own.reshape(members, 1, -1).expand(members, 1, units)], dim=1)
    thin, right = thin.to(out.dtype), right.to(out.dtype)  # torch.autocast's type depends on the operation
    return found.wrapped(out.baddbmm_(thin, right).reshape(*x.shape[:-1], units))


class _Unbatched(NamedTuple):
    """Tensors under vmap, unwrapped to ordinary tensors with the members' axis first."""

    parts: list[Any]
    members: int
    level: int
    """Nesting level of vmap."""

    @classmethod
    def of(cls, *parts: Tensor | None) -> _Unbatched | None:
        """Unwrap the parts, or return None outside vmap and inside nested vmaps."""
        batched = [part for part in parts if part is not None and _functorch.is_batchedtensor(part)]
        levels = {_functorch.maybe_get_level(part) for part in batched}
        inner = {id(part): _functorch.get_unwrapped(part) for part in batched}
        if len(levels) != 1 or any(_functorch.is_batchedtensor(part) for part in inner.values()):
            return None
        first = batched[0]
        members = inner[id(first)].shape[_functorch.maybe_get_bdim(first)]

        def unwrapped(part: Tensor | None) -> Tensor | None:
            if part is None:
                return None
            if id(part) in inner:
                moved: Tensor = inner[id(part)].movedim(_functorch.maybe_get_bdim(part), 0)
                return moved
            return part.expand(members, *part.shape)

        return cls([unwrapped(part) for part in parts], members, levels.pop())

    def wrapped(self, out: Tensor) -> Tensor:
        """Wrap a result with the members' axis first as a batched tensor of vmap."""
        batched: Tensor = _functorch._add_batch_dim(out, 0, self.level)
        return batched
