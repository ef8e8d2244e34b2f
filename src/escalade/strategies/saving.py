"""A strategy's state as the two parts of a file: tensors, and numbers beside them."""

from __future__ import annotations

from typing import Any

import torch

from escalade.errors import InputError
from escalade.storage.tensors import Tensors, with_prefix
from escalade.strategies.base import Strategy
from escalade.strategies.states import copied

_PREFIX = "strategy."


def save_strategy(strategy: Strategy) -> tuple[Tensors, dict[str, Any]]:
    """Return what :func:`load_strategy` needs: the tensors by prefixed name, and the numbers."""
    given = strategy.state_dict()  # copies already: tensors, which may be large, are not copied once more
    state = {name: part if isinstance(part, torch.Tensor) else copied(part) for name, part in given.items()}
    for name, part in state.items():
        if not isinstance(part, torch.Tensor | int | float):
            raise InputError(
                f"state_dict of {type(strategy).__name__} gives {name} as a {type(part).__name__}: "
                "a checkpoint holds tensors, arrays and numbers"
            )
    tensors = {name: part.cpu() for name, part in state.items() if isinstance(part, torch.Tensor)}
    numbers = {name: part for name, part in state.items() if name not in tensors}
    return {_PREFIX + name: part.numpy() for name, part in tensors.items()}, numbers


def load_strategy(strategy: Strategy, tensors: Tensors, numbers: dict[str, Any]) -> None:
    """Give ``strategy`` the state it was saved with; tensors of others beside its own are left alone.

    Raises:
        InputError: it belongs to another strategy, optimiser or dimension.
    """
    own = with_prefix(_PREFIX, tensors)
    strategy.load_state_dict(numbers | {name: torch.from_numpy(value.copy()) for name, value in own.items()})
