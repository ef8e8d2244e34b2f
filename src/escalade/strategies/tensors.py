"""Conversions of a strategy's numbers between users' input, populations and files."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from escalade.errors import InputError
from escalade.perturbation import Population, shared_center
from escalade.storage.tensors import Tensors, with_prefix
from escalade.support.arrays import holds_numbers, tensor_of

Start = ArrayLike | Tensor
"""An initial center, as passed by users."""


def first_center(x0: Start) -> Tensor:
    """Return a copy of ``x0`` on the CPU: float64 if ``x0`` is float64, otherwise float32.

    Raises:
        InputError: ``x0`` is not a vector of finite numbers.
    """
    vector = as_tensor(x0, "x0")
    dtype = torch.float64 if vector.dtype == torch.float64 else torch.float32
    if vector.ndim != 1 or not vector.numel() or not holds_numbers(vector):
        raise InputError(f"x0 must be a vector of numbers, not of shape {tuple(vector.shape)}")
    if not bool(vector.isfinite().all()):
        raise InputError("x0 must hold finite numbers only")
    return vector.to("cpu", dtype, copy=not isinstance(x0, np.ndarray))  # as_tensor has copied an array


def as_tensor(value: ArrayLike | Tensor, name: str) -> Tensor:
    """Convert a user's vector to a tensor.

    Raises:
        InputError: the vector does not hold numbers.
    """
    try:
        if isinstance(value, Tensor):
            return value.detach()
        # torch rejects arrays with negative strides.
        forward = value.copy() if isinstance(value, np.ndarray) else value
        return torch.as_tensor(forward, device="cpu")
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(f"{name} must be a vector of numbers") from None


def detached(value: Any) -> Any:
    """Return a tensor as an array without its gradient, and other values unchanged."""
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else value


def held_center(population: Population | None, center: Tensor) -> Any:
    """Return the population's copy of ``center``, an array or a tensor, or None if it has no equal copy."""
    held: Any = shared_center(population, None)
    if held is None:
        return None
    copy = tensor_of(held)
    alike = (copy.device, copy.dtype, copy.shape) == (center.device, center.dtype, center.shape)
    return held if alike and copy.data_ptr() != center.data_ptr() and torch.equal(copy, center) else None


def center_before(population: Population | None, center: Tensor) -> Tensor:
    """Return a copy of ``center`` before an update: the population's, if it is equal, saves memory."""
    held = held_center(population, center)
    return center.clone() if held is None else tensor_of(held)


State = dict[str, Tensor | int | float]
_PREFIX = "strategy."


class Saved(Protocol):
    """The part of a strategy that saves and loads its state."""

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State) -> None: ...


def save_strategy(strategy: Saved) -> tuple[Tensors, dict[str, Any]]:
    """Return the tensors by prefixed name, and the numbers, for :func:`load_strategy`."""
    state = strategy.state_dict()
    numbers = {name: part for name, part in state.items() if isinstance(part, int | float)}
    arrays = {name: tensor_of(part).cpu().numpy() for name, part in state.items() if name not in numbers}
    return {_PREFIX + name: part for name, part in arrays.items()}, numbers


def load_strategy(strategy: Saved, tensors: Tensors, numbers: dict[str, Any]) -> None:
    """Load a saved state into ``strategy``. Tensors without the strategy's prefix are ignored."""
    own = with_prefix(_PREFIX, tensors)
    strategy.load_state_dict(numbers | {name: torch.from_numpy(value.copy()) for name, value in own.items()})


def adapted_by(kind: type) -> list[str]:
    """Return the attributes that a strategy's class and its base classes list in ``adapted``."""
    return [name for base in kind.__mro__ for name in vars(base).get("adapted", ())]


def copied(value: Any) -> Tensor | int | float:
    """Return a copy of an array or a tensor as a tensor, or a number as a Python number."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, np.generic):
        return value.item()  # type: ignore[no-any-return]
    return value.clone() if isinstance(value, Tensor) else value


def restore(saved: Tensor | int | float, now: Any) -> Any:
    """Return a copy of a value from :func:`copied`, as an array or a tensor on a device if ``now`` is one."""
    if isinstance(now, np.ndarray):
        return torch.as_tensor(saved).cpu().numpy().copy()
    return torch.as_tensor(saved).to(now.device, copy=True) if isinstance(now, Tensor) else saved
