"""Vectors as users hand them to a strategy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from escalade.errors import InputError
from escalade.perturbation import GaussianPopulation, Population
from escalade.support.arrays import holds_numbers, tensor_of
from escalade.support.shared_memory import LARGE

Start = ArrayLike | Tensor
"""A first centre, as users hand it over."""

_BLOCK = 2**20  # numbers of a long vector that are looked at together


def first_center(x0: Start) -> Tensor:
    """A copy of ``x0`` on the CPU: float64 where it is float64, otherwise float32.

    Of a :class:`GivenAway` vector, the vector itself.

    Raises:
        InputError: it is not a vector of finite numbers.
    """
    given = as_tensor(x0, "x0")
    dtype = torch.float64 if given.dtype == torch.float64 else torch.float32
    if given.ndim != 1 or not given.numel() or not holds_numbers(given):
        raise InputError(f"x0 must be a vector of numbers, not of shape {tuple(given.shape)}")
    if not bool(given.isfinite().all()):
        raise InputError("x0 must hold finite numbers only")
    return given.to("cpu", dtype, copy=not isinstance(x0, GivenAway))


def as_tensor(given: ArrayLike | Tensor, name: str) -> Tensor:
    """A user's vector as a tensor, its memory shared where it can be.

    Raises:
        InputError: it does not hold numbers; the message names it.
    """
    try:
        # Torch does not read arrays that run backwards.
        contiguous: Any = (
            np.ascontiguousarray(given) if isinstance(given, np.ndarray) and given.ndim else given
        )
        return contiguous.detach() if isinstance(given, Tensor) else torch.as_tensor(contiguous, device="cpu")
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(f"{name} must be a vector of numbers") from None


def detached(given: Any) -> Any:
    """A user's numbers as numpy reads them: of a tensor the array of its numbers, without its gradient."""
    return given.detach().cpu().numpy() if isinstance(given, Tensor) else given


class GivenAway(np.ndarray[Any, Any]):
    """A first centre that is the strategy's to keep and to write to: ``array.view(GivenAway)``."""


def held_center(population: Population | None, center: Tensor) -> Any:
    """The population's own copy of ``center``, an array or a tensor; None where it has no such numbers."""
    held: Any = population.center if isinstance(population, GaussianPopulation) else None
    if isinstance(held, Tensor):
        apart = held.device == center.device and held.data_ptr() != center.data_ptr()
        return held if apart and held.dtype == center.dtype and torch.equal(held, center) else None
    if not isinstance(held, np.ndarray) or center.device.type != "cpu":
        return None
    array = center.numpy()
    if held.dtype != array.dtype or held.shape != array.shape or np.may_share_memory(held, array):
        return None
    blocks = (slice(low, low + _BLOCK) for low in range(0, len(array), _BLOCK))
    return held if all(np.array_equal(held[block], array[block]) for block in blocks) else None


def center_before(population: Population | None, center: Tensor) -> Tensor:
    """The centre that an update moves, to keep: a large one is the population's, which has it already."""
    held = held_center(population, center) if 4 * center.numel() >= LARGE else None
    return center.clone() if held is None else tensor_of(held)


def distance(first: Tensor, second: Tensor) -> float:
    """The Euclidean distance, without a third vector as large as they are."""
    pairs = zip(torch.split(first, _BLOCK), torch.split(second, _BLOCK), strict=True)
    return math.hypot(*torch.stack([(one - other).norm() for one, other in pairs]).tolist())
