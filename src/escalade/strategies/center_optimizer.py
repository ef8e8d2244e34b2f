"""Base class of the center's optimizers, and an adapter for ``torch.optim``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from escalade.errors import InputError
from escalade.storage.tensors import with_prefix
from escalade.support.numbers import real_number

PREFIX = "optimizer."
"""Prefix of an optimizer's names in a strategy's state."""


class CenterOptimizer(ABC):
    """Optimizer of one vector, the center.

    Args:
        params: one tensor, the center, shape (dimension,); :meth:`step` writes to it in place.
        lr: default step size, for a strategy without its own ``lr``.
        memory: names of its state tensors, which have the center's shape and start at zero.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, memory: Iterable[str] = ()) -> None:
        (self.center,) = params
        self.lr = real_number(lr, "the optimizer's lr")
        self.memory: dict[str, Tensor] = {name: torch.zeros_like(self.center) for name in memory}

    @abstractmethod
    def step(self, descent: Tensor, lr: float) -> None:
        """Move the center.

        Args:
            descent: the gradient to descend, shape (dimension,); it may be overwritten.
            lr: the step size.
        """

    def state_dict(self) -> dict[str, Tensor | int | float]:
        """Return copies of the state tensors, under the keys ``optimizer.*``."""
        return {PREFIX + name: value.clone() for name, value in self.memory.items()}

    def load_state_dict(self, state: Mapping[str, Tensor | int | float]) -> None:
        """Load a state from :meth:`state_dict`, ignoring other keys in ``state``.

        Raises:
            InputError: the state is from a different optimizer.
        """
        saved = with_prefix(PREFIX, state)
        if saved.keys() != self.memory.keys():
            raise InputError(
                "the saved state is from a different optimizer; continue with the one it was saved with"
            )
        for name, value in self.memory.items():
            value.copy_(torch.as_tensor(saved[name]))


_GROUP = "group."
"""Prefix of the plain numbers in an optimizer's parameter group: some optimizers count their steps there."""


class TorchOptimizer(CenterOptimizer):
    """Adapter for a user's ``torch.optim`` optimizer.

    Args:
        params: one tensor, the center.
        inner: the user's optimizer of that tensor.
    """

    def __init__(self, params: Iterable[Tensor], inner: torch.optim.Optimizer) -> None:
        super().__init__(params, float(inner.param_groups[0]["lr"]))
        self.inner = inner

    def step(self, descent: Tensor, lr: float) -> None:
        self.center.grad = descent
        self.inner.param_groups[0]["lr"] = lr
        try:
            self.inner.step()
        finally:
            self.center.grad = None

    def state_dict(self) -> dict[str, Tensor | int | float]:
        memory = self.inner.state_dict()["state"].get(0, {}) | _numbers_of(self.inner)
        return {PREFIX + name: _copied(value) for name, value in memory.items() if value is not None}

    def load_state_dict(self, state: Mapping[str, Tensor | int | float]) -> None:
        saved = {name: _copied(value) for name, value in with_prefix(PREFIX, state).items()}
        grouped = [name for name in saved if name.startswith(_GROUP)]
        numbers = {name.removeprefix(_GROUP): saved.pop(name) for name in grouped}
        groups = self.inner.state_dict()["param_groups"]
        groups[0] |= numbers
        self.inner.load_state_dict({"state": {0: saved} if saved else {}, "param_groups": groups})
        for name, value in saved.items():  # undo torch's cast to the center's type (of all but the step)
            if isinstance(value, Tensor) and name != "step":
                self.inner.state[self.center][name] = value.to(self.center.device)


def _numbers_of(optimizer: torch.optim.Optimizer) -> dict[str, Tensor | int | float]:
    """Return the plain numbers in the parameter group of a user's optimizer, except the learning rate.

    Each step sets the learning rate. In torch's own optimizers the numbers are options that no step changes.
    """
    if type(optimizer).__module__.startswith("torch.optim."):
        return {}
    group = optimizer.param_groups[0]
    numbers = {name: value for name, value in group.items() if type(value) in (int, float) and name != "lr"}
    return {_GROUP + name: value for name, value in numbers.items()}


def _copied(value: Tensor | int | float) -> Tensor | int | float:
    # Optimizers neither copy the tensors they return nor those they load, and write to them in the next step.
    return value.clone() if isinstance(value, Tensor) else value
