"""A strategy's state as the two parts of a file: tensors, and numbers beside them."""

from __future__ import annotations

from typing import Any

import torch

from escalade.storage.records import LARGEST
from escalade.storage.tensors import Damaged, Tensors, with_prefix
from escalade.strategies.base import Strategy

_PREFIX = "strategy."
_GROWS = ("history",)  # with the generations


def save_strategy(strategy: Strategy) -> tuple[Tensors, dict[str, Any]]:
    """What :func:`load_strategy` needs: the tensors by prefixed name, and the numbers."""
    state = strategy.state_dict()
    tensors = {_PREFIX + name: part.numpy() for name, part in state.items() if isinstance(part, torch.Tensor)}
    return tensors, {name: part for name, part in state.items() if not isinstance(part, torch.Tensor)}


def load_strategy(strategy: Strategy, tensors: Tensors, numbers: dict[str, Any]) -> None:
    """Give ``strategy`` the state it was saved with; tensors of others beside its own are left alone.

    Raises:
        InputError: it belongs to another strategy, optimiser or dimension.
        Damaged: it is no strategy's state.
    """
    own = {name: torch.from_numpy(value.copy()) for name, value in with_prefix(_PREFIX, tensors).items()}
    state = numbers | own
    _check(strategy.state_dict(), state)
    strategy.load_state_dict(state)


def _check(here: dict[str, Any], saved: dict[str, Any]) -> None:
    """Compare what was saved with the state that ``strategy`` has now: the same kinds of things."""
    for name, value in saved.items():
        if isinstance(value, torch.Tensor):
            if name != "history" and not bool(torch.isfinite(value).all()):
                raise Damaged(f"the strategy's {name} is not finite")
        elif isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > LARGEST:
            raise Damaged(f"the strategy's {name} is not a number")
    for name, value in here.items():
        if name not in saved:
            raise Damaged(f"the strategy's {name} is missing")
        _check_alike(name, value, saved[name])


def _check_alike(name: str, here: Any, saved: Any) -> None:
    if isinstance(here, torch.Tensor) != isinstance(saved, torch.Tensor):
        raise Damaged(f"the strategy's {name} is of another type")
    if isinstance(here, torch.Tensor):
        same = saved.numel() == here.numel() if here.ndim == 0 else saved.shape == here.shape
        if name not in _GROWS and not (same and saved.dtype == here.dtype):
            raise Damaged(
                f"the strategy's {name} is {saved.dtype} of shape {tuple(saved.shape)}, not {here.dtype} of "
                f"{tuple(here.shape)}"
            )
    elif isinstance(here, int) and not (isinstance(saved, int) and saved >= 0):
        raise Damaged(f"the strategy's {name} is not a count")
