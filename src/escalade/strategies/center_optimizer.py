"""The base of the optimisers that strategies step their centre with, and a user's own ``torch.optim`` one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from escalade.errors import InputError
from escalade.storage.tensors import with_prefix
from escalade.support.numbers import real_number

PREFIX = "optimizer."
"""The beginning of its names in a strategy's state."""


class CenterOptimizer(ABC):
    """Moves one vector, the centre, along a direction of descent.

    Args:
        params: one tensor, the centre, shape (dimension,); :meth:`step` writes to it in place.
        lr: the step size of a strategy that is given none.
        memory: names of what it remembers, a tensor of the centre's shape each; zero at first.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, memory: Iterable[str] = ()) -> None:
        (self.center,) = params
        self.lr = real_number(lr, "the optimizer's lr")
        self.memory: dict[str, Tensor] = {name: torch.zeros_like(self.center) for name in memory}

    @abstractmethod
    def step(self, descent: Tensor, lr: float) -> None:
        """Move the centre.

        Args:
            descent: what gradient descent subtracts, shape (dimension,); it may be written to.
            lr: the step size.
        """

    def state_dict(self) -> dict[str, Tensor | int | float]:
        """Copies of what it remembers, under the keys ``optimizer.*``."""
        return {PREFIX + name: value.clone() for name, value in self.memory.items()}

    def load_state_dict(self, state: Mapping[str, Tensor | int | float]) -> None:
        """Take over what :meth:`state_dict` gave; other keys in ``state`` are left alone.

        Raises:
            InputError: another optimiser saved it.
        """
        saved = with_prefix(PREFIX, state)
        if saved.keys() != self.memory.keys():
            raise InputError(
                "the saved state is that of another optimizer: go on with the one it was saved with"
            )
        for name, value in self.memory.items():
            value.copy_(torch.as_tensor(saved[name]))


_GROUP = "group."
"""Begins the names of numbers that an optimiser keeps beside its options: some count their steps there."""


class TorchOptimizer(CenterOptimizer):
    """A user's ``torch.optim`` optimiser of the centre.

    Args:
        params: one tensor, the centre.
        inner: the user's optimiser of that tensor.
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
        return {PREFIX + name: _own(value) for name, value in memory.items() if value is not None}

    def load_state_dict(self, state: Mapping[str, Tensor | int | float]) -> None:
        saved = {name: _own(value) for name, value in with_prefix(PREFIX, state).items()}
        grouped = [name for name in saved if name.startswith(_GROUP)]
        numbers = {name.removeprefix(_GROUP): saved.pop(name) for name in grouped}
        groups = self.inner.state_dict()["param_groups"]
        groups[0] |= numbers
        self.inner.load_state_dict({"state": {0: saved} if saved else {}, "param_groups": groups})
        for name, value in saved.items():  # torch gives all but the step the type of the centre
            if isinstance(value, Tensor) and name != "step":
                self.inner.state[self.center][name] = value.to(self.center.device)


def _numbers_of(optimizer: torch.optim.Optimizer) -> dict[str, Tensor | int | float]:
    """Return the plain numbers of its group; not the learning rate, which each step is given.

    Those of torch's own optimisers are options, which no step changes.
    """
    if type(optimizer).__module__.startswith("torch.optim."):
        return {}
    group = optimizer.param_groups[0]
    numbers = {name: value for name, value in group.items() if type(value) in (int, float) and name != "lr"}
    return {_GROUP + name: value for name, value in numbers.items()}


def _own(value: Tensor | int | float) -> Tensor | int | float:
    # Optimisers hand out and take in their tensors without a copy, and write to them in the next step.
    return value.clone() if isinstance(value, Tensor) else value
