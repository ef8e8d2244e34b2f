"""A strategy's state: copies of its attributes, and the two parts of a file, tensors and numbers."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from escalade.storage.tensors import Tensors, with_prefix
from escalade.support.arrays import tensor_of

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
