"""The result of a search by ``ask`` and ``tell``, and the record that it is made of."""

from __future__ import annotations

import math
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
    """The state of a search by ``ask`` and ``tell``; fitness has the user's own sign.

    ``best`` is the best member so far, shape (dimension,), and ``best_fitness`` what it gave; before
    the first ``tell`` they are the centre and NaN. ``center`` is the present centre, and often the
    better answer where fitness is noisy. ``history`` holds the best and the mean fitness of each
    generation, shape (generations, 2), read-only.
    """

    best: Tensor
    best_fitness: float
    center: Tensor
    history: NDArray[np.float64]


class Record:
    """The best member that a strategy has written out, and each generation's best and mean fitness.

    Args:
        sign: -1 where a smaller fitness is better.
        best: the best member so far, shape (dimension,), and its fitness with the user's own sign.
        rows: the generations so far, shape (generations, 2).
    """

    def __init__(
        self, sign: float, best: tuple[Tensor, float] | None = None, rows: NDArray[np.float64] | None = None
    ) -> None:
        self._sign, self.best, self.history = sign, best, FitnessHistory(rows)

    def add(self, members: Population, fitness: NDArray[np.float64], unusable: Sequence[int]) -> None:
        """Take over a generation.

        Args:
            members: the generation.
            fitness: theirs, shape (population,), larger is better.
            unusable: those members whose fitness is not their own.
        """
        usable = np.delete(np.arange(len(fitness)), unusable)
        if not len(usable):
            return self.history.append(math.nan, math.nan)
        known = fitness[usable]
        best, mean = self._sign * float(known.max()), self._sign * float(known.mean())
        if self.best is None or self._sign * best > self._sign * self.best[1]:
            (vector,) = write_all(members, [int(usable[known.argmax()])])
            self.best = torch.from_numpy(vector), best
        return self.history.append(best, mean)

    def state(self) -> dict[str, Tensor | int | float]:
        """The entries of a strategy's state; none before the first generation."""
        found: dict[str, Tensor | int | float] = {}
        if len(self.history):
            found["history"] = torch.from_numpy(self.history.rows.copy())
        if self.best is not None:
            found |= {"best": self.best[0].clone(), "best_fitness": self.best[1]}
        return found

    def restored(self, state: Mapping[str, Any]) -> Record:
        """A record of what :meth:`state` gave."""
        history, best = state.get("history"), state.get("best")
        return Record(
            self._sign,
            (best.clone(), float(state["best_fitness"])) if isinstance(best, Tensor) else None,
            history.numpy() if isinstance(history, Tensor) else None,
        )


class FitnessHistory:
    """Rows of two numbers, one a generation; reading them costs nothing, however many there are."""

    def __init__(self, rows: NDArray[np.float64] | None = None) -> None:
        self._rows = np.empty((0, 2)) if rows is None else np.array(rows, dtype=np.float64)
        self._count = len(self._rows)

    def __len__(self) -> int:
        return self._count

    def append(self, best: float, mean: float) -> None:
        """Add a generation."""
        if self._count == len(self._rows):  # make room for as many again; rows given out stay as they are
            self._rows = np.concatenate([self._rows, np.empty((max(16, self._count), 2))])
        self._rows[self._count] = best, mean
        self._count += 1

    @property
    def rows(self) -> NDArray[np.float64]:
        """All rows so far, shape (generations, 2): a read-only view, in which nothing changes later."""
        view = self._rows[: self._count]
        view.flags.writeable = False
        return view
