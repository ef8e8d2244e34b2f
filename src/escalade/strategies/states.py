"""The states of strategies: the names in them, and the copies that are saved and taken over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from escalade.errors import InputError

ALWAYS = ("center", "generation", "update_ratio")
"""The names in every strategy's state."""
_SOMETIMES = ("history", "best", "best_fitness")  # of members that were asked for


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
    """A copy of what :func:`copied` gave: an array, or a tensor on its device, where ``now`` is one."""
    if isinstance(now, np.ndarray):
        return torch.as_tensor(saved).cpu().numpy().copy()
    return torch.as_tensor(saved).to(now.device, copy=True) if isinstance(now, Tensor) else saved


def check_shape(state: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> None:
    """Check the shape of an array in a state that is to be taken over.

    Raises:
        InputError: it has another one.
    """
    found = tuple(state[name].shape)
    if found != shape:
        raise InputError(
            f"the saved {name} has the shape {found}, not {shape}: build the strategy with the same arguments"
        )


def check_names(state: Mapping[str, Any], names: Iterable[str], further: tuple[str, ...] | None) -> None:
    """Check the names in a state that is to be taken over.

    Args:
        state: the state.
        names: those that it must have.
        further: how others may begin; None for any others.

    Raises:
        InputError: one is missing, or is another strategy's.
    """
    if missing := set(names) - state.keys():
        raise InputError(f"the state holds no {min(missing)}: give all that state_dict() gave")
    others = state.keys() - {*names, *_SOMETIMES}
    if further is not None and (strange := [name for name in others if not name.startswith(further)]):
        raise InputError(f"the state holds {min(strange)}: it is another strategy's")
