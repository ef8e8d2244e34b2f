"""A strategy's state as the two parts of a file: tensors, and numbers beside them."""

from __future__ import annotations

from typing import Any

import torch

from escalade.storage.tensors import Tensors, under
from escalade.strategies.base import Strategy

_PREFIX = "strategy."


def save_strategy(strategy: Strategy) -> tuple[Tensors, dict[str, Any]]:
    """What :func:`load_strategy` needs: the tensors by prefixed name, and the numbers."""
    state = strategy.state_dict()
    tensors = {_PREFIX + name: part.numpy() for name, part in state.items() if isinstance(part, torch.Tensor)}
    return tensors, {name: part for name, part in state.items() if not isinstance(part, torch.Tensor)}


def load_strategy(strategy: Strategy, tensors: Tensors, numbers: dict[str, Any]) -> None:
    """Give ``strategy`` the state it was saved with; tensors of others beside its own are left alone.

    Raises:
        InputError: it belongs to another strategy or dimension.
    """
    own = {name: torch.from_numpy(value.copy()) for name, value in under(_PREFIX, tensors).items()}
    strategy.load_state_dict(numbers | own)
