"""Several strategies, one of which moves in each generation: the centers of a novelty search."""

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
    """Several strategies, one per center.

    Attributes are those of the strategy with the number ``drawn``. ``generation`` counts the run's
    generations. Each strategy counts the generations in which it was drawn.
    """

    def __init__(self, each: Sequence[Strategy]) -> None:
        self.each = list(each)
        self.drawn = 0
        self.generation = 0

    @classmethod
    def of(cls, each: Sequence[Strategy]) -> Strategy:
        """Combine several strategies into one."""
        return cast(Strategy, cls(each))

    @property
    def current(self) -> Strategy:
        """The strategy that moves in this generation."""
        return self.each[self.drawn]

    def __getattr__(self, name: str) -> Any:
        if "each" not in vars(self):  # while copy or pickle creates the object
            raise AttributeError(name)
        return getattr(self.current, name)

    def tell(self, fitness: ArrayLike | Tensor) -> None:
        """Move the current center; see :meth:`Strategy.tell`."""
        self.current.tell(fitness)
        self.generation += 1

    def state_dict(self) -> State:
        """Return the states of all strategies; see :meth:`Strategy.state_dict`."""
        state: State = {"drawn": self.drawn, "generation": self.generation}
        for number, strategy in enumerate(self.each):
            state |= {f"{number}.{name}": value for name, value in strategy.state_dict().items()}
        return state

    def load_state_dict(self, state: State) -> None:
        """Load a state from :meth:`state_dict`."""
        if int(state["drawn"]) >= len(self.each):
            raise InputError(f"the saved run drew center {state['drawn']}, but there are {len(self.each)}")
        for number, strategy in enumerate(self.each):
            strategy.load_state_dict(with_prefix(f"{number}.", state))
        self.drawn, self.generation = int(state["drawn"]), int(state["generation"])


def of_center(tensors: Tensors, number: int) -> Tensors:
    """Return a checkpoint's tensors with those of one center renamed as in a run with a single center."""
    own = {
        f"{room}.{name}": value
        for room in ("strategy", "normalizer")
        for name, value in with_prefix(f"{room}.{number}.", tensors).items()
    }
    return {**tensors, **own}


def best_known(worth: NDArray[np.float64]) -> int:
    """Return the number of the best center by ``worth``, shape (centers,), in which NaN means unknown."""
    return int(np.where(np.isnan(worth), -np.inf, worth).argmax())
