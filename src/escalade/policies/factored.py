"""Operations of torch on a matrix plus a product of thin factors, of one member or of many.

Each takes what the function of torch takes, behind ``factors_of``, which gives a tensor's factors or None; it
returns NotImplemented where there is no shorter way than to write the matrix out. Called under
``torch.func.vmap``, where the factors are those of many members, the product with the centre is one for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

FactorsOf = Callable[[Any], Any]


def linear(factors_of: FactorsOf, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """``input (weight + a b^T)^T + bias``."""
    factors = factors_of(weight)
    if factors is None:
        return NotImplemented
    return _apply(_Linear, input, weight, factors.a, factors.b, bias)


def product(factors_of: FactorsOf, input: Any, other: Any) -> Any:
    """``input (other + a b^T)``."""
    factors = factors_of(other)
    if factors is None or factors_of(input) is not None or other.ndim != 2:
        return NotImplemented
    return _apply(_Linear, input, other.t(), factors.b, factors.a, None)


def sum_and_product(
    factors_of: FactorsOf, input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1
) -> Any:
    """``input + mat1 (mat2 + a b^T)``."""
    factors = factors_of(mat2)
    if factors is None or factors_of(mat1) is not None or (beta, alpha) != (1, 1) or input.ndim != 1:
        return NotImplemented
    return _apply(_Linear, mat1, mat2.t(), factors.b, factors.a, input)


def embedding(
    factors_of: FactorsOf,
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    *others: Any,
    **named: Any,
) -> Any:
    """Rows of ``weight + a b^T``."""
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
    """A convolution with ``weight + a b^T``: r filters of ``b``, whose images ``a`` mixes."""
    factors = factors_of(weight)
    if factors is None:
        return NotImplemented
    call = {3: torch.conv1d, 4: torch.conv2d, 5: torch.conv3d}[weight.ndim]
    settings = (stride, padding, dilation, groups)
    batched = input.ndim == weight.ndim
    images = input if batched else input[None]
    out = call(images, weight, None, *settings)
    rank = factors.b.shape[-1]
    thin = factors.b.mT.reshape(rank, *weight.shape[1:]).repeat(groups, *[1] * (weight.ndim - 1))
    seen = call(images, thin, None, *settings).reshape(len(images), groups, rank, -1)
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
    """Layer normalisation, whose weight and bias may be the members' own."""
    if weight is None or bias is None:
        return func(input, normalized_shape, weight, bias, eps)
    return _apply(_LayerNorm, input, weight, bias, tuple(normalized_shape), eps)


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
    """Scaled dot-product attention: for torch.func, members' heads are more heads of one call."""
    if dropout_p > 0.0 or query.ndim < 3:
        return func(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    return _apply(_Attention, query, key, value, attn_mask, is_causal, scale, enable_gqa)


class _Linear(torch.autograd.Function):
    """``x (weight + a b^T)^T + bias``, with a rule of its own for many members."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, a: Tensor, b: Tensor, bias: Tensor | None) -> Tensor:
        return nn.functional.linear(x, weight, bias) + (x @ b) @ a.mT

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing is kept: there is no gradient."""

    @staticmethod
    def vmap(
        info: Any, dims: Any, x: Tensor, weight: Tensor, a: Tensor, b: Tensor, bias: Tensor | None
    ) -> Any:
        members = info.batch_size
        x, a, b = (_leading(part, dim, members) for part, dim in ((x, dims[0]), (a, dims[2]), (b, dims[3])))
        units, features = weight.shape
        rows = x.reshape(members, prod(x.shape[1:-1]), features)
        out = torch.mm(rows.reshape(-1, features), weight.t()).reshape(members, -1, units)
        thin, right = torch.bmm(rows, b), a.mT
        if bias is not None and dims[4] is None:
            out += bias
        elif bias is not None:  # one more thin factor, whose number is always 1
            own = _leading(bias, dims[4], members)
            thin = torch.cat([thin, thin.new_ones(*thin.shape[:2], 1)], dim=2)
            right = torch.cat([right, own[:, None]], dim=1)
        out.baddbmm_(thin, right)
        return out.reshape(*x.shape[:-1], units), 0


class _LayerNorm(torch.autograd.Function):
    """Layer normalisation, with a rule of its own for many members."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor, shape: tuple[int, ...], eps: float) -> Tensor:
        return nn.functional.layer_norm(x, shape, weight, bias, eps)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing is kept: there is no gradient."""

    @staticmethod
    def vmap(
        info: Any, dims: Any, x: Tensor, weight: Tensor, bias: Tensor, shape: tuple[int, ...], eps: float
    ) -> Any:
        members = info.batch_size
        x, weight, bias = (_leading(p, d, members) for p, d in zip((x, weight, bias), dims, strict=False))
        beside = (members, *[1] * (x.ndim - 1 - len(shape)), *shape)
        normal = nn.functional.layer_norm(x, shape, None, None, eps)
        return torch.addcmul(bias.reshape(beside), normal, weight.reshape(beside)), 0


class _Attention(torch.autograd.Function):
    """Scaled dot-product attention, with a rule of its own for many members."""

    @staticmethod
    def forward(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        causal: bool,
        scale: Any,
        grouped: bool,
    ) -> Tensor:
        return nn.functional.scaled_dot_product_attention(
            query, key, value, mask, is_causal=causal, scale=scale, enable_gqa=grouped
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing is kept: there is no gradient."""

    @staticmethod
    def vmap(
        info: Any,
        dims: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        causal: bool,
        scale: Any,
        grouped: bool,
    ) -> Any:
        members = info.batch_size
        parts = [_leading(p, d, members) for p, d in zip((query, key, value), dims, strict=False)]
        query, key, value = (part.reshape(-1, *part.shape[2:]) for part in parts)
        if mask is not None:
            shape = (*parts[0].shape[1:-1], parts[1].shape[-2])
            own = _leading(mask, dims[3], members)
            own = own.reshape(members, *[1] * (len(shape) + 1 - own.ndim), *own.shape[1:])
            mask = own.expand(members, *shape).reshape(-1, *shape[1:])
        out = nn.functional.scaled_dot_product_attention(
            query, key, value, mask, is_causal=causal, scale=scale, enable_gqa=grouped
        )
        return out.reshape(members, -1, *out.shape[1:]), 0


def _apply(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    return function.apply(*arguments)  # type: ignore[no-untyped-call]


def _leading(part: Tensor, dim: int | None, members: int) -> Tensor:
    """A tensor with the members' axis first, which is added where all share it."""
    return part.expand(members, *part.shape) if dim is None else part.movedim(dim, 0)
