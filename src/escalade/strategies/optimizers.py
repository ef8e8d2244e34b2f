"""How a strategy that steps with a ``torch.optim`` optimiser makes it and saves it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor
from torch.optim import Optimizer

from escalade.errors import InputError
from escalade.strategies.base import State

OptimizerFactory = Callable[[Iterable[Tensor]], Optimizer]
"""Parameters to optimiser, such as ``partial(torch.optim.Adam, lr=0.01)``."""

_PREFIX = "optimizer."


def not_negative(value: float, name: str) -> float:
    """``value``; :class:`InputError` names it if it is below zero or NaN."""
    if not value >= 0:
        raise InputError(f"{name} {value} must not be negative")
    return value


def save_moments(optimizer: Optimizer) -> State:
    """What ``optimizer`` remembers of its one parameter, under flat keys."""
    saved = optimizer.state_dict()["state"].get(0, {})
    return {_PREFIX + name: _own(value) for name, value in saved.items() if value is not None}


def load_moments(optimizer: Optimizer, state: State) -> None:
    """Give ``optimizer`` back what :func:`save_moments` took from it."""
    moments = {name.removeprefix(_PREFIX): _own(v) for name, v in state.items() if name.startswith(_PREFIX)}
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": {0: moments} if moments else {}, "param_groups": groups})


def _own(value: Tensor | float) -> Tensor | float:
    # Optimisers hand out and take in their tensors without a copy, and write to them in the next step.
    return value.clone() if isinstance(value, Tensor) else value
