"""The base of strategies whose centre an optimiser moves."""

from __future__ import annotations

from escalade.errors import InputError
from escalade.strategies.base import State, Strategy
from escalade.strategies.center_optimizer import PREFIX
from escalade.strategies.optimizers import OptimizerFactory, make_optimizer
from escalade.strategies.schedules import Schedule, parse
from escalade.support.numbers import LARGEST, real_number


class DescentStrategy(Strategy):
    """A strategy with an optimiser of the centre, which descends ``-gradient + weight_decay * centre``."""

    further = (PREFIX,)

    def set_optimizer(
        self,
        optimizer: str | OptimizerFactory,
        lr: float | str | Schedule | None,
        momentum: float | None,
        weight_decay: float,
    ) -> None:
        """Make the optimiser; its own step size and momentum stand where these are None.

        Raises:
            InputError: an argument is impossible; the message names it.
        """
        self.weight_decay = real_number(weight_decay, "weight_decay")
        if not 0 <= self.weight_decay <= LARGEST:
            raise InputError(f"weight_decay {weight_decay} must be finite, not negative and at most 1e30")
        self.lr_schedule = None if lr is None else parse(lr, "lr", zero=True)
        self.optimizer = make_optimizer(optimizer, self.center, momentum)

    @property
    def lr(self) -> float:
        return self.optimizer.lr if self.lr_schedule is None else super().lr

    def state_dict(self) -> State:
        return super().state_dict() | self.optimizer.state_dict()

    def check_state(self, state: State) -> None:
        super().check_state(state)
        self.optimizer.check_state(state)

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.optimizer.load_state_dict(state)
