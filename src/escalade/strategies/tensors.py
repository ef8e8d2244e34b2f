"""A strategy's numbers: as users hand them over, as a population holds them, and as files keep them."""

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
"""A first centre, as users hand it over."""


def first_center(x0: Start) -> Tensor:
    """A copy of ``x0`` on the CPU: float64 where it is float64, otherwise float32.

    Raises:
        InputError: it is not a vector of finite numbers.
    """
    given = as_tensor(x0, "x0")
    dtype = torch.float64 if given.dtype == torch.float64 else torch.float32
    if given.ndim != 1 or not given.numel() or not holds_numbers(given):
        raise InputError(f"x0 must be a vector of numbers, not of shape {tuple(given.shape)}")
    if not bool(given.isfinite().all()):
        raise InputError("x0 must hold finite numbers only")
    return given.to("cpu", dtype, copy=not isinstance(x0, np.ndarray))  # which as_tensor copies


def as_tensor(given: ArrayLike | Tensor, name: str) -> Tensor:
    """A user's vector as a tensor.

    Raises:
        InputError: it does not hold numbers; the message names it.
    """
    try:
        if isinstance(given, Tensor):
            return given.detach()
        # Torch does not read arrays that run backwards.
        forward = given.copy() if isinstance(given, np.ndarray) else given
        return torch.as_tensor(forward, device="cpu")
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(f"{name} must be a vector of numbers") from None


def detached(given: Any) -> Any:
    """A user's numbers as numpy reads them: of a tensor the array of its numbers, without its gradient."""
    return given.detach().cpu().numpy() if isinstance(given, Tensor) else given


def held_center(population: Population | None, center: Tensor) -> Any:
    """The population's own copy of ``center``, an array or a tensor; None where it has no such numbers."""
    held: Any = shared_center(population, None)
    if held is None:
        return None
    kept = tensor_of(held)
    alike = (kept.device, kept.dtype, kept.shape) == (center.device, center.dtype, center.shape)
    return held if alike and kept.data_ptr() != center.data_ptr() and torch.equal(kept, center) else None


def center_before(population: Population | None, center: Tensor) -> Tensor:
    """The centre that an update moves, to keep: the population's, where it has the same."""
    held = held_center(population, center)
    return center.clone() if held is None else tensor_of(held)


State = dict[str, Tensor | int | float]
_PREFIX = "strategy."


class Saved(Protocol):
    """A strategy, as far as its state goes."""

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State) -> None: ...


def save_strategy(strategy: Saved) -> tuple[Tensors, dict[str, Any]]:
    """Return what :func:`load_strategy` needs: the tensors by prefixed name, and the numbers."""
    state = strategy.state_dict()
    numbers = {name: part for name, part in state.items() if isinstance(part, int | float)}
    arrays = {name: tensor_of(part).cpu().numpy() for name, part in state.items() if name not in numbers}
    return {_PREFIX + name: part for name, part in arrays.items()}, numbers


def load_strategy(strategy: Saved, tensors: Tensors, numbers: dict[str, Any]) -> None:
    """Give ``strategy`` the state it was saved with; tensors of others beside its own are left alone."""
    own = with_prefix(_PREFIX, tensors)
    strategy.load_state_dict(numbers | {name: torch.from_numpy(value.copy()) for name, value in own.items()})


def adapted_by(kind: type) -> list[str]:
    """The attributes that a strategy's class and its bases list in ``adapted``."""
    return [name for base in kind.__mro__ for name in vars(base).get("adapted", ())]


def copied(value: Any) -> Tensor | int | float:
    """A copy of an array or a tensor, as a tensor; a number as Python's own."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, np.generic):
        return value.item()  # type: ignore[no-any-return]
    return value.clone() if isinstance(value, Tensor) else value


def as_kept(saved: Tensor | int | float, now: Any) -> Any:
    """A copy of what :func:`copied` gave: an array, or a tensor on its device, if ``now`` is one."""
    if isinstance(now, np.ndarray):
        return torch.as_tensor(saved).cpu().numpy().copy()
    return torch.as_tensor(saved).to(now.device, copy=True) if isinstance(now, Tensor) else saved
