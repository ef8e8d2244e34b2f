"""Searches on noisy functions, which return different values at the same point.

A share of the members is evaluated again. If their ranks change too much, every member is evaluated more
often and the standard deviations grow. Hansen, Niederberger, Guzzella and Koumoutsakos 2009, "A method for
handling uncertainty in evolutionary optimization with an application to feedback control of combustion", IEEE
Transactions on Evolutionary Computation 13(1). Some constants differ from the paper;
``benchmarks/optimize.md`` has the measurements behind them.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.strategies.bounds import confine
from escalade.strategies.ranking import default_population, ranks
from escalade.strategies.shaping import usable
from escalade.wings.optimize.calls import Values
from escalade.wings.optimize.plan import SearchOptions, SearchPlan
from escalade.wings.optimize.search import Optimum, Search
from escalade.wings.optimize.space import SearchSpace, Start

Array = NDArray[np.float64]

_FRESH = 30  # evaluations of the center at the end
_QUANTILE = 2.045  # 97.5 % of Student's t with 29 degrees of freedom
_SHARE = 0.1  # of the members that are evaluated again, at least two
_ACCEPTED = 0.7  # theta: the paper has 0.2, pycma 0.5
_SMOOTHING = 0.3  # of the measured noise, as in pycma; the paper has 1
_MOST = 100  # evaluations of a member per generation


def noisy_population(dimension: int) -> int:
    """Return the default population of a noisy search: three times the usual one, and even."""
    return 3 * default_population(dimension) // 2 * 2


def rank_changes(first: Array, again: Array) -> float:
    """Return the paper's measure of rank changes between two evaluations.

    Args:
        first: values of all members, shape (population,).
        again: new values of the first members, shape (k,).

    Returns:
        The measured noise. It is above 0 if ranks changed too much.
    """
    count, most = len(again), 2 * len(first)
    both = np.concatenate([first, again, first[count:]])
    places = 1 + ranks(np.where(np.isnan(both), np.inf, both))
    old, new = places[:count], places[len(first) :][:count]

    def accepted(place: Array) -> Array:
        distances = np.abs(np.arange(1, most) - place[:, None])
        return np.percentile(distances, 50 * _ACCEPTED, axis=1)

    changes = np.maximum(np.abs(new - old) - 1, 0)
    return float((2 * changes - accepted(new - (new > old)) - accepted(old - (old > new))).mean())


class Repetitions:
    """Adapts the number of evaluations of each member to the noise.

    Args:
        dimension: number of parameters. The count changes more slowly if it is large.
    """

    def __init__(self, dimension: int) -> None:
        self.count = 1
        """Evaluations of each member in this generation."""
        self.noise = 0.0
        """Smoothed noise; too large if above 0."""
        self._wanted, self._factor = 1.0, 1 + 2 / (dimension + 10)

    def rows(self, members: Array, room: float) -> Array:
        """Return the points to evaluate: all members, then some of them again.

        Args:
            members: the members, shape (population, dimension).
            room: evaluations left in the budget. The count is reduced to fit.
        """
        self._again = max(2, int(_SHARE * len(members)))
        most = room // (len(members) + self._again)
        self.count = int(max(1, min(self._wanted, most)))
        return np.concatenate([members, members[: self._again]]).repeat(self.count, axis=0)

    def fold(self, values: Array) -> Array:
        """Return the mean of each member's usable values, shape (population,), and measure the noise."""
        table = values.reshape(-1, self.count)
        first, again = table[: -self._again], table[-self._again :]
        changes = rank_changes(_means(first), _means(again))
        self.noise += _SMOOTHING * (changes - self.noise)
        factor = self._factor if self.noise > 0 else 1 / self._factor
        self._wanted = min(max(self._wanted * factor, 1.0), _MOST)
        pooled = _means(np.hstack([first[: self._again], again]))
        return np.concatenate([pooled, _means(first[self._again :])])


def _means(table: Array) -> Array:
    """Return the mean of the usable values in each row; NaN for a row without any."""
    known = usable(table)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, table, 0.0).sum(axis=1) / known.sum(axis=1))


class NoisySearch(Search):
    """A search whose answer is its center, with the mean and interval of fresh evaluations there."""

    def __init__(self, space: SearchSpace, plan: SearchPlan, options: SearchOptions, *more: Any) -> None:
        self._budget = math.inf if options.budget is None else options.budget
        self._interval: tuple[float, float] | None = None
        self._noted = 1  # evaluations of a member in the last note
        self._ending: str | None = None  # reason to stop, while the center is evaluated
        if options.budget is not None:
            options = dataclasses.replace(options, budget=max(1, options.budget - _FRESH))
        super().__init__(space, plan, options, *more)

    def _begin(self, start: Start) -> None:
        super()._begin(start)
        self._repetitions = Repetitions(self._space.dimension)

    def ask(self) -> Array:
        if self._ending:
            return self._center().repeat(_FRESH, axis=0)
        rows = self._repetitions.rows(super().ask(), self._budget - _FRESH - self.evaluations)
        if (count := self._repetitions.count) >= 2 * self._noted:
            self._noted = count
            self.notes.add(f"the function is noisy; each member is now evaluated {count} times")
        return rows

    def tell(self, values: Values) -> None:
        self._count(values)
        if self._ending:
            self._set_result(values.numbers)
            reason = None if self._ending == "target" else self._ending
            self._ending = None
            self._end(self._reached() or reason)
            return
        members = self._repetitions.fold(values.numbers)
        self._ending = self._learn(members) or self._promise(members)
        if self._repetitions.noise > 0 and not self._ending:
            wider = 1 + 1 / (self._space.dimension + 10)
            self._strategy.narrow(np.full(self._space.dimension, wider))
            confine(self._strategy, self._space.widest, self._space.narrowest)

    def found(self) -> Optimum:
        found = super().found()
        if math.isnan(found.best_fitness) and len(found.history):
            return dataclasses.replace(found, best_fitness=float(found.history[-1, 1]))
        return dataclasses.replace(found, interval=self._interval)

    def _center(self) -> Array:
        return self._space.points(self._strategy.center.double().numpy()[None])

    def _promise(self, members: Array) -> str | None:
        """Return ``target`` if the median member reaches it, so that the center probably does, too."""
        target = self._options.target
        if target is None:
            return None
        worst = np.where(np.isnan(members), np.inf, self._sign * members)
        return "target" if np.median(worst) <= self._sign * target else None

    def _set_result(self, values: Array) -> None:
        known = values[usable(values)]
        if len(known) < 2:
            return
        mean = float(known.mean())
        if self._leader is self._strategy or self._sign * mean < self._best_value:
            half = _QUANTILE * float(known.std(ddof=1)) / math.sqrt(len(known))
            self._interval = mean - half, mean + half
            super()._set_best(self._center()[0], self._sign * mean)

    def _set_best(self, point: Array, value: float) -> None:
        """Ignore the best member, which is the luckiest one."""
