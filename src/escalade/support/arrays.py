"""Conversion between arrays and tensors, and of the fitness that user code returns."""

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
    """Return an array as a tensor with the same memory; a tensor is returned unchanged.

    ``torch.as_tensor`` would copy an array to torch's default device.
    """
    found: Tensor = torch.from_numpy(values) if isinstance(values, np.ndarray) else values
    return found


_NO_NUMBERS = "fitness must hold one number per member"


def as_float64(fitness: ArrayLike | Tensor) -> NDArray[np.float64]:
    """Copy ``fitness`` to a float64 array.

    Args:
        fitness: a tensor of any type on any device, an array, or a list of either.

    Raises:
        InputError: ``fitness`` does not hold real numbers.
    """
    if isinstance(fitness, Mapping | Set):
        raise InputError(_NO_NUMBERS)
    if isinstance(fitness, Tensor):
        if not holds_numbers(fitness):
            raise InputError(_NO_NUMBERS)
        return np.array(fitness.detach().to("cpu", torch.float64).numpy())
    with suppress(TypeError, ValueError, RuntimeError):  # RuntimeError for tensors that require grad
        array = np.array(fitness)
        if array.dtype.kind in "biuf":
            return array.astype(np.float64)
    try:  # for example a list of bfloat16 tensors, a type that numpy lacks
        return np.array([as_float(value) for value in cast("Iterable[Any]", fitness)], dtype=np.float64)
    except TypeError:
        raise InputError(_NO_NUMBERS) from None


def as_float(value: Any) -> float:
    """Convert a real number, or an array or tensor of one, to a float.

    Raises:
        TypeError: the value is text, complex, not one number, or too large for a float.
    """
    try:
        number = value.item() if isinstance(value, Tensor | np.ndarray) else value
        refused = isinstance(number, str | bytes | complex | np.complexfloating)
        if refused or (isinstance(value, Tensor) and not holds_numbers(value)):
            raise TypeError  # float() would parse text, and drop NumPy's imaginary parts
        return float(number)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise TypeError(f"{type(value).__name__} is not a real number") from None


def real_numbers(values: Any, name: str) -> NDArray[np.float64]:
    """Copy ``values`` to a float64 array of the same shape.

    Raises:
        InputError: the values are not numbers; the message names them.
    """
    try:
        # Convert in torch, because numpy has no bfloat16.
        array = values.detach().double().cpu().numpy() if isinstance(values, Tensor) else values
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be numbers, not {values!r:.100}") from None


def holds_numbers(tensor: Tensor) -> bool:
    """Return True for a dense tensor of real numbers with data."""
    return not (tensor.is_complex() or tensor.is_meta) and tensor.layout == torch.strided


def precision(device: torch.device) -> torch.dtype:
    """Return float64, or float32 on Apple's GPUs, which do not have it."""
    return torch.float32 if device.type == "mps" else torch.float64
