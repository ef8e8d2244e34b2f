"""Arrays and tensors as one or the other, and fitness as a user's code gives it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from escalade.errors import InputError


def tensor_of(values: Any) -> Tensor:
    """An array as a tensor of its memory; a tensor as it is.

    Not by ``torch.as_tensor``, which copies an array to torch's default device.
    """
    found: Tensor = torch.from_numpy(values) if isinstance(values, np.ndarray) else values
    return found


_NO_NUMBERS = "fitness must hold one number a member"


def as_float64(fitness: ArrayLike | Tensor) -> NDArray[np.float64]:
    """A copy of ``fitness``: a tensor of any type on any device, an array, or a list of either.

    Raises:
        InputError: it does not hold numbers.
    """
    if isinstance(fitness, Mapping | Set):
        raise InputError(_NO_NUMBERS)
    if isinstance(fitness, Tensor):
        if not holds_numbers(fitness):
            raise InputError(_NO_NUMBERS)
        return np.array(fitness.detach().to("cpu", torch.float64).numpy())
    with suppress(TypeError, ValueError, RuntimeError):  # the last of tensors that require grad
        given = np.array(fitness)
        if given.dtype.kind in "biuf":
            return given.astype(np.float64)
    try:  # such as a list of bfloat16 tensors, a type that numpy does not have
        return np.array([as_float(value) for value in cast("Iterable[Any]", fitness)], dtype=np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(_NO_NUMBERS) from None


def as_float(value: Any) -> float:
    """A number as a float.

    Raises:
        TypeError: it is text, or complex, which ``float`` would read or cut; or it is no number.
        ValueError, RuntimeError, OverflowError: ``float`` does not take it.
    """
    unread = isinstance(value, str | bytes | complex | np.complexfloating)
    if unread or (isinstance(value, Tensor) and not holds_numbers(value)):
        raise TypeError  # which float() would read or cut
    return float(value.detach() if isinstance(value, Tensor) else value)


def holds_numbers(given: Tensor) -> bool:
    """True for real numbers that are written out."""
    return not (given.is_complex() or given.is_meta) and given.layout == torch.strided
