"""Minimise (or maximise) a function of a vector."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from escalade.errors import InputError
from escalade.perturbation import write_all
from escalade.strategies.base import Direction, Strategy, as_float64
from escalade.strategies.bounds import Given
from escalade.strategies.cma import default_population
from escalade.strategies.registry import STRATEGIES, entry_named
from escalade.strategies.restarts import Start, restarts_named
from escalade.strategies.result import History
from escalade.strategies.shaping import usable
from escalade.strategies.space import SearchSpace, StrategyFactory
from escalade.strategies.stopping import StopRules
from escalade.support.numbers import real_number, whole_number

Array = NDArray[np.float64]
Function = Callable[[Any], Any]
"""A vector, shape (dimension,), to a number; with ``vectorized``, rows (n, dimension) to numbers (n,)."""


@dataclass(frozen=True)
class Optimum:
    """What :func:`optimize` found.

    ``best`` is the best point, of the kind that ``x0`` is (a numpy array, or a tensor), float64, shape
    (dimension,), within the bounds; ``best_fitness`` is what the function gave there. ``history`` holds the
    best and the mean fitness of each generation, shape (generations, 2). ``evaluations`` counts function
    values, ``restarts`` the searches after the first.

    ``stop_reason`` is ``target``, ``budget``, ``interrupted`` (Ctrl-C while the function ran), or why the
    last search ended: ``tolx`` (the standard deviations are tiny), ``tolfun`` or ``tolfunhist`` (the
    fitness changes no more), ``tolxup`` (the standard deviations grew ten thousandfold), ``noeffect`` (they
    are below the centre's last bit), ``condition`` (the covariance is numerically useless), ``stagnation``
    or ``generations`` (it took too long), ``limit`` (a small search of ``bipop`` had used its share).
    """

    best: Any
    best_fitness: float
    history: NDArray[np.float64]
    evaluations: int
    restarts: int
    stop_reason: str


def optimize(
    function: Function,
    x0: ArrayLike | Tensor | Callable[[np.random.Generator], ArrayLike],
    strategy: str | StrategyFactory = "cma-es",
    *,
    direction: Direction = "minimize",
    sigma: float | ArrayLike | None = None,
    population: int | None = None,
    bounds: Given | None = None,
    budget: int | None = None,
    target: float | None = None,
    tolerance: float = 1e-11,
    restarts: Literal["ipop", "bipop"] | None = None,
    vectorized: bool = False,
    seed: int = 0,
) -> Optimum:
    """Search for the smallest (or largest) value of a function of a vector.

    The search is in float64. A value that is NaN or infinite counts as the worst of its generation. The
    same seed gives the same points on one machine with as many threads of BLAS, if the function gives the
    same values.

    Args:
        function: takes a vector, shape (dimension,), and gives a number. It gets numpy arrays, or tensors
            where ``x0`` is a tensor; they are its own.
        x0: where to begin, shape (dimension,), or what makes such a vector of a random generator. A vector
            is where every search begins that has no bounds to draw a new one from.
        strategy: a name, such as ``cma-es`` (up to a few hundred parameters) or ``sep-cma-es``, or what is
            called like a strategy class, such as ``functools.partial(OpenAIES, lr=0.1)``.
        direction: ``minimize`` or ``maximize``.
        sigma: the first standard deviation, a number or one a parameter; 0.3 of the range between two
            bounds and 0.5 elsewhere when not given.
        population: points a generation; the strategy's default when not given.
        bounds: ``(lower, upper)``, each a number, a vector or None; or one pair of numbers a parameter,
            ``[(0, 1), (2, None)]``; or a ``scipy.optimize.Bounds``. Two pairs that can be read in both ways
            are refused, but for a tuple of two arrays or lists, which is ``(lower, upper)``. The function is
            never called outside.
        budget: evaluations after which to stop, at the end of a generation.
        target: stop when a value as good as this is found.
        tolerance: when a search has converged, see :class:`escalade.strategies.stopping.StopRules`.
        restarts: for cma-es and sep-cma-es: start again after convergence, with populations that double
            (``ipop``), or with large and small ones in turns (``bipop``), until the budget is used, the
            target is found, or the population has doubled nine times.
        vectorized: the function takes all points of a generation, shape (n, dimension), and gives shape (n,).
        seed: the same seed gives the same search.

    Raises:
        InputError: an argument is impossible; the message names it.

    Example:
        >>> import numpy as np
        >>> found = optimize(lambda x: ((x - 3) ** 2).sum(), np.zeros(4), bounds=(-5, 5))
        >>> bool(abs(found.best - 3).max() < 1e-4), found.stop_reason
        (True, 'tolfun')
    """
    space = SearchSpace(x0, sigma, bounds, whole_number(seed, "seed"))
    problem = _Problem(function, direction, vectorized, budget, target, space.tensors)
    factory = strategy if callable(strategy) else entry_named(strategy).load()
    if restarts is None:
        made = space.make(factory, Start(population), 0, direction)
        return problem.result(_search(made, space, problem, StopRules(made, tolerance)), 0)
    if callable(strategy) or not entry_named(strategy).restarts:
        able = " or ".join(sorted(name for name, entry in STRATEGIES.items() if entry.restarts))
        raise InputError(f"restarts={restarts!r} is for strategy {able}: leave it out")
    first = default_population(space.dimension) if population is None else population
    schedule = restarts_named(restarts)(first, space.rng)
    reason, number = "", 0
    for number, start in enumerate(schedule.starts()):
        before = problem.evaluations
        made = space.make(factory, start, number, direction)
        limit = None if start.budget is None else before + start.budget
        reason = _search(made, space, problem, StopRules(made, tolerance), limit)
        schedule.used(problem.evaluations - before)
        if reason in ("target", "budget", "interrupted"):
            break
    return problem.result(reason, number)


def _search(
    strategy: Strategy, space: SearchSpace, problem: _Problem, rules: StopRules, limit: int | None = None
) -> str:
    """One search, to its end; why it ended. ``limit`` is where it gives way to the next one."""
    while True:
        points = space.points(write_all(strategy.sample(), strategy.table.values))
        try:
            fitness = problem.values(points)
        except KeyboardInterrupt:
            if problem.evaluations == 0:
                raise
            return "interrupted"
        strategy.tell(fitness)
        reason = problem.reason_to_stop() or rules.check(problem.sign * fitness)
        if reason is not None:
            return reason
        if limit is not None and problem.evaluations >= limit:
            return "limit"


class _Problem:
    """The function and what is known of it so far."""

    def __init__(
        self,
        function: Function,
        direction: Direction,
        vectorized: bool,
        budget: int | None,
        target: float | None,
        tensors: bool,
    ) -> None:
        if budget is not None and whole_number(budget, "budget") < 1:
            raise InputError(f"budget {budget} must be at least 1")
        if target is not None:
            real_number(target, "target")
        self.sign = 1.0 if direction == "minimize" else -1.0
        self.evaluations = 0
        self._function, self._vectorized, self._tensors = function, vectorized, tensors
        self._budget, self._target = budget, target
        self._best, self._best_value = np.empty(0), math.inf  # the value is to be minimised
        self._history = History()

    def values(self, points: Array) -> Array:
        """What the function gives for the points of a generation, shape (n,)."""
        given = torch.from_numpy(points.copy()) if self._tensors else points.copy()
        values = as_float64(self._function(given) if self._vectorized else [self._function(x) for x in given])
        if values.size != len(points):
            raise InputError(
                f"the function gave an array of shape {values.shape} for {len(points)} points: it "
                "must give one number a point"
            )
        values = values.reshape(len(points))
        self.evaluations += len(points)
        self._remember(points, np.where(usable(values), self.sign * values, np.nan))
        return values

    def _remember(self, points: Array, values: Array) -> None:
        if np.isnan(values).all():
            self._history.append(math.nan, math.nan)
            return
        best = int(np.nanargmin(values))
        self._history.append(self.sign * float(values[best]), self.sign * float(np.nanmean(values)))
        if values[best] < self._best_value:
            self._best, self._best_value = points[best].copy(), float(values[best])

    def reason_to_stop(self) -> str | None:
        """``target`` or ``budget``, once either is reached."""
        if self._target is not None and self._best_value <= self.sign * self._target:
            return "target"
        return "budget" if self._budget is not None and self.evaluations >= self._budget else None

    def result(self, reason: str, restarts: int) -> Optimum:
        """What was found."""
        if not len(self._best):
            raise InputError("the function gave no finite number at all: there is nothing to optimise")
        best = torch.from_numpy(self._best) if self._tensors else self._best
        value = self.sign * self._best_value
        return Optimum(best, value, self._history.rows, self.evaluations, restarts, reason)
