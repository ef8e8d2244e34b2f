"""Several strategies of which one moves in a generation: the centres of a search for novelty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from escalade.errors import InputError
from escalade.storage.tensors import Tensors, with_prefix
from escalade.strategies.base import Strategy
from escalade.strategies.tensors import State


class Centers:
    """Several strategies, one a centre; whatever is asked of them is asked of the one that is ``drawn``.

    The generation is that of the run; a strategy counts those in which it was drawn.
    """

    def __init__(self, each: Sequence[Strategy]) -> None:
        self.each = list(each)
        self.drawn = 0
        self.generation = 0

    @classmethod
    def of(cls, each: Sequence[Strategy]) -> Strategy:
        """All of them as one strategy."""
        return cast(Strategy, cls(each))

    @property
    def current(self) -> Strategy:
        """The strategy of the centre that is drawn."""
        return self.each[self.drawn]

    def __getattr__(self, name: str) -> Any:
        if "each" not in vars(self):  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self.current, name)

    def tell(self, fitness: ArrayLike | Tensor) -> None:
        """Move the centre that is drawn; see :meth:`Strategy.tell`."""
        self.current.tell(fitness)
        self.generation += 1

    def state_dict(self) -> State:
        """The states of all; see :meth:`Strategy.state_dict`."""
        state: State = {"drawn": self.drawn, "generation": self.generation}
        for number, strategy in enumerate(self.each):
            state |= {f"{number}.{name}": value for name, value in strategy.state_dict().items()}
        return state

    def load_state_dict(self, state: State) -> None:
        """Take over what :meth:`state_dict` gave."""
        if int(state["drawn"]) >= len(self.each):
            raise InputError(f"the saved run drew centre {state['drawn']} of {len(self.each)}")
        for number, strategy in enumerate(self.each):
            strategy.load_state_dict(with_prefix(f"{number}.", state))
        self.drawn, self.generation = int(state["drawn"]), int(state["generation"])


def of_center(tensors: Tensors, number: int) -> Tensors:
    """A checkpoint's tensors with those of one centre under the names that a run of one centre has."""
    own = {
        f"{room}.{name}": value
        for room in ("strategy", "normalizer")
        for name, value in with_prefix(f"{room}.{number}.", tensors).items()
    }
    return {**tensors, **own}


def best_known(worth: NDArray[np.float64]) -> int:
    """The centre of the largest number, NaN where nothing is known of one, shape (centers,)."""
    return int(np.where(np.isnan(worth), -np.inf, worth).argmax())
