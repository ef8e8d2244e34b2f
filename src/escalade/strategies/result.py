"""Result of an ask-and-tell search, and the record behind it."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from escalade.perturbation import Population, write_all


@dataclass(frozen=True)
class Result:
    """Result of an ask-and-tell search so far.

    Fitness has the user's sign. ``best`` is the best member so far, shape (dimension,), and ``best_fitness``
    its fitness; before the first ``tell`` they are the center and NaN. ``center`` is the current center,
    often the better solution if fitness is noisy. ``history`` holds the best and the mean fitness of each
    generation, shape (generations, 2).
    """

    best: Tensor
    best_fitness: float
    center: Tensor
    history: NDArray[np.float64]


class Record:
    """Best member of a search, and each generation's best and mean fitness.

    Args:
        sign: -1 if a smaller fitness is better, otherwise 1.
    """

    def __init__(self, sign: float) -> None:
        self._sign = sign
        self.best: tuple[Tensor, float] | None = None
        """Best member so far, shape (dimension,), and its fitness with the user's sign."""
        self._numbers = array("d")  # best and mean fitness of each generation

    @property
    def history(self) -> NDArray[np.float64]:
        """Best and mean fitness of each generation, shape (generations, 2)."""
        return rows_of(self._numbers)

    def add(self, members: Population, fitness: NDArray[np.float64], unusable: Sequence[int]) -> None:
        """Record a generation.

        Args:
            members: the population.
            fitness: shape (population,), larger is better.
            unusable: numbers of the members whose fitness was not finite and has been replaced.
        """
        usable = np.delete(np.arange(len(fitness)), unusable)
        if not len(usable):
            self._numbers.extend((math.nan, math.nan))
            return
        known = fitness[usable]
        best, mean = self._sign * float(known.max()), self._sign * float(known.mean())
        if self.best is None or self._sign * best > self._sign * self.best[1]:
            (vector,) = write_all(members, [int(usable[known.argmax()])])
            self.best = torch.from_numpy(vector), best
        self._numbers.extend((best, mean))

    def state(self) -> dict[str, Tensor | int | float]:
        """Return the record's entries of a strategy's state, which are empty before the first generation."""
        found: dict[str, Tensor | int | float] = {}
        if len(self._numbers):
            found["history"] = torch.from_numpy(self.history)
        if self.best is not None:
            found |= {"best": self.best[0].clone(), "best_fitness": self.best[1]}
        return found

    def load(self, state: Mapping[str, Any]) -> None:
        """Load the entries from :meth:`state`."""
        history, best = state.get("history"), state.get("best")
        self._numbers = array("d", [] if history is None else history.flatten().tolist())
        self.best = None if best is None else (best.clone(), float(state["best_fitness"]))


def rows_of(numbers: array[float]) -> NDArray[np.float64]:
    """Return a copy of ``numbers``, two per generation, as an array of shape (generations, 2)."""
    return np.array(numbers).reshape(-1, 2)
