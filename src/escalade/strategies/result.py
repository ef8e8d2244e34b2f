"""How far a search by ``ask`` and ``tell`` has come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Result:
    """How far a search by ``ask`` and ``tell`` has come; fitness has the user's own sign.

    ``best`` is the best member so far, shape (dimension,), and ``best_fitness`` what it gave; before
    the first ``tell`` they are the centre and NaN. ``center`` is the present centre, and often the
    better answer where fitness is noisy. ``history`` holds the best and the mean fitness of each
    generation, shape (generations, 2), read-only.
    """

    best: Tensor
    best_fitness: float
    center: Tensor
    history: NDArray[np.float64]


class History:
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
