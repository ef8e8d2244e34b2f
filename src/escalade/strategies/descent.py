"""Base class of strategies with an optimizer of the center."""

from __future__ import annotations

from typing import Any, Unpack

from escalade.errors import InputError
from escalade.strategies.base import Common, Strategy
from escalade.strategies.optimizers import OptimizerFactory, make_optimizer
from escalade.strategies.schedules import Rate, parse
from escalade.strategies.tensors import State
from escalade.support.numbers import LARGEST, real_number


class Descent(Common, total=False):
    """Keywords that strategies pass to :class:`DescentStrategy`, which documents them."""

    optimizer: str | OptimizerFactory | None
    lr: Rate | None
    momentum: float | None
    weight_decay: float


class DescentStrategy(Strategy):
    """A strategy with an optimizer of the center, which descends ``-gradient + weight_decay * center``.

    Args:
        *arguments: initial center, population, and other positional arguments of the next base class.
        optimizer: ``adam``, ``sgd``, ``clipup``, or a function that returns a ``torch.optim`` optimizer of
            its parameters; None means the strategy's default.
        lr: the optimizer's step size: a number, a schedule, or its text; None means the optimizer's default.
        momentum: momentum of ``sgd`` and ``clipup``, in [0, 1); None means 0.9.
        weight_decay: pull towards zero, not negative.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
    """

    def __init__(
        self,
        *arguments: Any,
        optimizer: str | OptimizerFactory | None = None,
        lr: Rate | None = None,
        momentum: float | None = None,
        weight_decay: float = 0.0,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(*arguments, **common)
        self.weight_decay = real_number(weight_decay, "weight_decay")
        if not 0 <= self.weight_decay <= LARGEST:
            raise InputError(f"weight_decay {weight_decay} must be finite, not negative and at most 1e30")
        self.lr_schedule = None if lr is None else parse(lr, "lr", zero=True)
        self.optimizer = make_optimizer(optimizer or self.usual_optimizer(), self.center, momentum)

    def usual_optimizer(self) -> str | OptimizerFactory:
        """Return the default optimizer."""
        return "adam"

    @property
    def lr(self) -> float:
        return self.optimizer.lr if self.lr_schedule is None else super().lr

    def state_dict(self) -> State:
        return super().state_dict() | self.optimizer.state_dict()

    def load_state_dict(self, state: State) -> None:
        self.optimizer.load_state_dict(state)
        super().load_state_dict(state)
