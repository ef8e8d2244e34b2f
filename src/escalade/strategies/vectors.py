"""Vectors as users hand them to a strategy: the first centre, and fitness."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from escalade.errors import InputError

_BLOCK = 2**20  # numbers of a long vector that are looked at together


def first_center(x0: ArrayLike | Tensor) -> Tensor:
    """A copy of ``x0`` on the CPU: float64 where it is float64, otherwise float32.

    Of a :class:`GivenAway` vector, the vector itself.

    Raises:
        InputError: it does not hold numbers.
    """
    given = as_tensor(x0, "x0")
    dtype = torch.float64 if given.dtype == torch.float64 else torch.float32
    if not _holds_numbers(given):
        raise InputError("x0 must be a vector of numbers")
    return given.to("cpu", dtype, copy=not isinstance(x0, GivenAway))


def as_tensor(given: ArrayLike | Tensor, name: str) -> Tensor:
    """A user's vector as a tensor, its memory shared where it can be.

    Raises:
        InputError: it does not hold numbers; the message names it.
    """
    try:
        # Torch does not read arrays that run backwards.
        contiguous = np.ascontiguousarray(given) if isinstance(given, np.ndarray) and given.ndim else given
        return torch.as_tensor(contiguous).detach()
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(f"{name} must be a vector of numbers") from None


def _holds_numbers(given: Tensor) -> bool:
    """True for real numbers that are written out."""
    return not (given.is_complex() or given.is_meta) and given.layout == torch.strided


class GivenAway(np.ndarray[Any, Any]):
    """A first centre that is the strategy's to keep and to write to: ``array.view(GivenAway)``."""


_NO_NUMBERS = "fitness must hold one number a member"


def as_float64(fitness: ArrayLike | Tensor) -> NDArray[np.float64]:
    """A copy of ``fitness``: a tensor of any type on any device, an array, or a list of either.

    Raises:
        InputError: it does not hold numbers.
    """
    if isinstance(fitness, Mapping | Set):
        raise InputError(_NO_NUMBERS)
    if isinstance(fitness, Tensor):
        if not _holds_numbers(fitness):
            raise InputError(_NO_NUMBERS)
        return np.array(fitness.detach().to("cpu", torch.float64).numpy())
    with suppress(TypeError, ValueError, RuntimeError):  # the last of tensors that require grad
        given = np.array(fitness)
        if given.dtype.kind in "biuf":
            return given.astype(np.float64)
    try:  # such as a list of bfloat16 tensors, a type that numpy does not have
        return np.array([_as_float(value) for value in cast("Iterable[Any]", fitness)], dtype=np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(_NO_NUMBERS) from None


def _as_float(value: Any) -> float:
    if isinstance(value, str | bytes | complex | np.complexfloating):
        raise TypeError  # which float() would read or cut
    return float(value.detach() if isinstance(value, Tensor) else value)


def distance(first: Tensor, second: Tensor) -> float:
    """The Euclidean distance, without a third vector as large as they are."""
    pairs = zip(torch.split(first, _BLOCK), torch.split(second, _BLOCK), strict=True)
    return math.hypot(*(float((one - other).norm()) for one, other in pairs))
