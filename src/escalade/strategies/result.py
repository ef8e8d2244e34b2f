"""Results of searches: one by ``ask`` and ``tell`` as it stands, and one by ``optimize``."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from escalade.perturbation import Population, write_all
from escalade.support.html import shown, table
from escalade.support.lines import lines_png

_FACTS = ("best_fitness", "strategy", "stop_reason", "evaluations", "failures", "restarts")
_NUMBERS = 8  # of the best point in a notebook


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


@dataclass(frozen=True)
class Optimum:
    """The result of :func:`escalade.optimize`.

    ``best`` is the best point, of the kind that ``x0`` is (a numpy array, or a tensor), float64, shape
    (dimension,), within the bounds; ``best_fitness`` is what the function gave there. ``center`` is the last
    centre of the search that found it, of the same kind: often the better answer where the function is noisy.
    ``history`` holds the best and the mean fitness of each generation, shape (generations, 2), read-only.
    ``evaluations`` counts points, ``failures`` those at which the function raised what ``catch`` names,
    ``restarts`` the searches after the first. ``strategy`` is the name of what searched.

    ``stop_reason`` is ``target``, ``budget``, ``seconds``, ``callback``, ``interrupted`` (Ctrl-C), or why the
    last search ended: ``tolx`` (the standard deviations are tiny), ``tolfun`` or ``tolfunhist`` (the
    fitness changes no more), ``tolxup`` (one without two bounds grew ten thousandfold), ``noeffect`` (they
    are below the centre's last bit), ``condition`` (the covariance is numerically useless), ``stagnation``
    or ``generations`` (it took too long), ``diverged`` (its numbers are too large),
    ``limit`` (a small search of ``bipop`` had used its share).
    """

    best: Any
    best_fitness: float
    center: Any
    history: NDArray[np.float64]
    evaluations: int
    failures: int
    restarts: int
    stop_reason: str
    strategy: str

    def _repr_html_(self) -> str:
        best = np.asarray(self.best)
        more = ", ..." if len(best) > _NUMBERS else ""
        facts = {name: shown(getattr(self, name)) for name in _FACTS}
        facts |= {"generations": str(len(self.history))}
        facts |= {"best": ", ".join(shown(float(number)) for number in best[:_NUMBERS]) + more}
        page, picture = table(f"optimum of {len(best):,} parameters", facts), self._repr_png_()
        if picture is None:
            return page
        return f"{page}<img src='data:image/png;base64,{base64.b64encode(picture).decode()}'>"

    def _repr_png_(self) -> bytes | None:
        best, mean = self.history.T
        return lines_png({"best of a generation": best, "mean": mean}, "fitness")


class Record:
    """The best member that a strategy has written out, and each generation's best and mean fitness.

    Args:
        sign: -1 where a smaller fitness is better.
        best: the best member so far, shape (dimension,), and its fitness with the user's own sign.
        rows: the generations so far, shape (generations, 2).
    """

    def __init__(
        self,
        sign: float,
        best: tuple[Tensor, float] | None = None,
        rows: NDArray[np.float64] | None = None,
    ) -> None:
        self._sign, self.best, self.history = sign, best, FitnessHistory(rows)

    def judged(
        self, members: Population, fitness: NDArray[np.float64], unusable: Sequence[int]
    ) -> tuple[tuple[Tensor, float] | None, tuple[float, float]]:
        """The best member and the row that :meth:`add` takes, once the strategy has moved on.

        Args:
            members: the generation.
            fitness: theirs, shape (population,), larger is better.
            unusable: those members whose fitness is not their own.
        """
        usable = np.delete(np.arange(len(fitness)), unusable)
        if not len(usable):
            return self.best, (math.nan, math.nan)
        known = fitness[usable]
        best, mean = self._sign * float(known.max()), self._sign * float(known.mean())
        if self.best is not None and not self._sign * best > self._sign * self.best[1]:
            return self.best, (best, mean)
        (vector,) = write_all(members, [int(usable[known.argmax()])])
        return (torch.from_numpy(vector), best), (best, mean)

    def add(self, best: tuple[Tensor, float] | None, row: tuple[float, float]) -> None:
        """Take over a generation."""
        self.best = best
        self.history.append(*row)

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
