"""A strategy's state as the two parts of a file: tensors, and numbers beside them."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

from escalade.errors import InputError
from escalade.storage.records import Count, Numbers, check_arrays, checked
from escalade.storage.tensors import Damaged, Tensors, with_prefix
from escalade.strategies.base import Strategy
from escalade.strategies.states import copied

_PREFIX = "strategy."
_WHERE = "the strategy's state"
_HISTORY = {_PREFIX + "history": Numbers("float64", ("generations", 2), finite=False)}
"""Best and mean fitness by generation, where members were asked for; each generation adds a row."""


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
        Damaged: it is no strategy's state.
    """
    here, counts = save_strategy(strategy)
    saved = {name: value for name, value in tensors.items() if name.startswith(_PREFIX)}
    schema = {name: _like(name, value) for name, value in (saved | here).items()}
    check_arrays(saved, schema | (_HISTORY if saved.keys() >= _HISTORY.keys() else {}), _WHERE)
    if missing := counts.keys() - numbers.keys():
        raise Damaged(f"{_WHERE} has no {min(missing)}")
    kinds = {name: _kind(counts.get(name, value)) for name, value in numbers.items()}
    state = {name: checked(kinds[name], value, f"{_WHERE}: {name}") for name, value in numbers.items()}
    own = with_prefix(_PREFIX, saved)
    strategy.load_state_dict(state | {name: torch.from_numpy(value.copy()) for name, value in own.items()})


def _like(name: str, array: NDArray[Any]) -> Numbers:
    """Numbers of a fresh strategy's type and shape; an array that is empty in it may have rows by now."""
    if array.shape[:1] == (0,):
        return Numbers(str(array.dtype), (f"rows of {name}", *array.shape[1:]))
    return Numbers.like(array)


def _kind(value: Any) -> Any:
    """The type of a number in a state: those that are whole are counts."""
    return Count if isinstance(value, int) else float
