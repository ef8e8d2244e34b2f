"""Searches of one call of optimize, and their result."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from escalade.errors import Diverged, InputError
from escalade.perturbation import write_all
from escalade.recorders import Recorder
from escalade.strategies.bounds import confine
from escalade.strategies.result import rows_of
from escalade.strategies.shaping import usable
from escalade.support.output import shown, table
from escalade.training.limits import Deadline, Limits, TimeUp
from escalade.training.notes import Notes
from escalade.training.objective import Outcome
from escalade.training.progress import Counts, Progress
from escalade.training.rows import make_row
from escalade.wings.optimize.calls import FunctionCalls, Values
from escalade.wings.optimize.plan import SearchOptions, SearchPlan
from escalade.wings.optimize.space import SearchSpace, Start
from escalade.wings.optimize.stopping import StopRules

Array = NDArray[np.float64]

_FACTS = ("best_fitness", "strategy", "stop_reason", "evaluations", "failures", "restarts")
_NUMBERS = 8  # of the best point that a notebook shows


@dataclass(frozen=True)
class Optimum:
    """Result of :func:`escalade.optimize`.

    ``best`` is the best point, a numpy array or a tensor like ``x0``, float64, shape (dimension,), within the
    bounds. ``best_fitness`` is the value of the function there. ``center`` is the last center of the search
    that found it, which is often the better result on a noisy function.

    With ``noisy=True``, ``best`` is that center, ``best_fitness`` the mean of fresh evaluations there, and
    ``interval`` its 95 % interval. Before these evaluations, for example in a callback, ``best_fitness`` is
    the mean of the last generation, and ``interval`` is None.

    With ``constraints``, ``best`` is the best feasible point, or the least violated one if ``feasible`` is
    False. ``violations`` are its constraint violations, 0 if a constraint is met, shape (constraints,).

    ``history`` holds the best and the mean fitness of each generation, shape (generations, 2).
    ``evaluations`` is the number of points, ``failures`` the number of points with an exception in ``catch``,
    ``restarts`` the number of searches after the first, and ``strategy`` the name of the strategy.

    ``stop_reason`` is ``target``, ``budget``, ``seconds``, ``callback``, ``interrupted`` (Ctrl-C), or the
    reason for the end of the last search: ``tolx`` (tiny standard deviations), ``tolfun`` or ``tolfunhist``
    (the fitness no longer changes), ``tolxup`` (a standard deviation without two bounds grew by a factor of
    10,000), ``noeffect`` (standard deviations below the floating-point precision of the center),
    ``condition`` (ill-conditioned covariance), ``stagnation`` or ``generations`` (too many generations),
    ``diverged`` (numbers too large), or ``limit`` (a small search of ``bipop`` used its share).
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
    interval: tuple[float, float] | None = None
    feasible: bool = True
    violations: NDArray[np.float64] = field(default_factory=partial(np.empty, 0))

    def _repr_html_(self) -> str:
        best = np.asarray(self.best)
        more = ", ..." if len(best) > _NUMBERS else ""
        facts = {name: shown(getattr(self, name)) for name in _FACTS}
        if self.interval is not None:
            facts["interval"] = " to ".join(map(shown, self.interval))
        if len(self.violations):
            facts["feasible"] = str(self.feasible)
        facts |= {"generations": str(len(self.history))}
        facts |= {"best": ", ".join(shown(float(number)) for number in best[:_NUMBERS]) + more}
        return table(f"optimum of {len(best):,} parameters", facts)


Callback = Callable[[Optimum], bool | None]


def check_callback(callback: Any) -> None:
    """Check that a callback is callable or None.

    Raises:
        InputError: it is not.
    """
    if callback is not None and not callable(callback):
        raise InputError(f"callback must be a function of the result so far, not {callback!r}")


_FINAL = ("target", "budget", "seconds", "callback")  # reasons that prevent a restart


class _Points:
    """Terms for the notes of a search."""

    subject = "point"
    unit = "points"
    forgives: str | None = None
    tie_advice = ""


class Search:
    """A search on a function, including its restarts.

    Args:
        space: starting points, and the conversion of members to points.
        plan: strategy and restarts.
        options: options of the search. Only budget, target, direction and tolerance are used here.
        limits: limit of seconds.
        recorders: recorders that get notes and a row per generation.
        callback: called with the result so far after each generation; True stops the search.
    """

    def __init__(
        self,
        space: SearchSpace,
        plan: SearchPlan,
        options: SearchOptions,
        limits: Limits,
        recorders: Sequence[Recorder] = (),
        callback: Callback | None = None,
    ) -> None:
        self.reason: str | None = None
        """Reason for its end, or None if it has not ended."""
        self.evaluations = 0
        """Number of evaluated points."""
        self.progress = Progress()
        self._failures = self._searches = 0
        self._new = 0  # evaluations since the last update
        self._space, self._plan, self._options, self._limits = space, plan, options, limits
        self._sign = 1.0 if options.direction == "minimize" else -1.0
        self._recorders, self._callback = recorders, callback
        self.notes = Notes(recorders, self.progress, _Points())
        self._best, self._best_value = np.empty(0), math.inf  # the value is minimized
        self._history = array("d")  # the best and the mean of each generation
        self._begin(next(plan.starts))

    def _begin(self, start: Start) -> None:
        self._strategy = self._space.make(self._plan.factory, start, self._searches)
        self._searches += 1
        if self._searches > 1:
            self.notes.add(f"restart: search {self._searches}, population {self._strategy.population_size}")
        boxed = np.isfinite(self._space.widest)
        self._rules = StopRules(self._strategy, self._options.tolerance, boxed)
        self._before = self.evaluations  # of the previous searches
        self._limit = math.inf if start.budget is None else self._before + start.budget
        if not len(self._best):
            self._leader = self._strategy  # strategy of the search that found the best point, or of the first

    @property
    def has_learned(self) -> bool:
        """True after the first generation."""
        return len(self._history) > 0

    def ask(self) -> Array:
        """Return the points of the next generation."""
        self._generation_start = time.monotonic()
        self._points = self._space.points(write_all(self._strategy.sample()))
        return self._points

    def tell(self, values: Values) -> None:
        """Update with the values of these points, and restart if the search has converged."""
        self._count(values)
        self._end(self._learn(values.numbers))

    def _count(self, values: Values) -> None:
        self.evaluations += len(values.numbers)
        self._new += len(values.numbers)
        if values.message:
            self._failures += int(values.failed.sum())
            self.notes.add(f"{values.message}; such points count as the worst", kind="failed")

    def _end(self, reason: str | None) -> None:
        """End the current search if there is a reason, and restart if the reason and the plan allow it."""
        if reason is None or reason in _FINAL:
            self.reason = reason
            return
        try:
            start = self._plan.starts.send(self.evaluations - self._before)
        except StopIteration:
            self.reason = reason
        else:
            self._begin(start)

    def _learn(self, values: Array) -> str | None:
        """Update the strategy with a value for each member. Return the reason to end the search, or None."""
        strategy = self._strategy
        self._remember(values)
        # Read before the update changes them.
        scales = (strategy.sigma, strategy.lr) if self._recorders else (math.nan, math.nan)
        try:
            self._update(values)
        except Diverged as problem:
            self.notes.add(str(problem))
            return self._reached() or "diverged"
        if self._space.confines:
            confine(strategy, self._space.widest, self._space.narrowest)
        self.progress.generation += 1
        self.progress.updates += Counts(episodes=self._new, seconds=time.monotonic() - self._generation_start)
        self._new = 0
        self._record(values, scales)
        reason = "callback" if self._stopped() else self._rules.check(self._sign * values)
        return self._reached() or reason or ("limit" if self.evaluations >= self._limit else None)

    def _update(self, values: Array) -> None:
        self._strategy.tell(values)

    def _stopped(self) -> bool:
        """Return whether the callback stops the search, by True or by StopIteration as in SciPy."""
        try:
            return self._callback is not None and bool(self._callback(self.found()))
        except StopIteration:
            return True

    def _remember(self, values: Array) -> None:
        known = np.flatnonzero(usable(values))
        if not len(known):
            self._history.extend((math.nan, math.nan))
            return
        losses = self._sign * values[known]
        best = int(losses.argmin())
        value = float(losses[best])
        self._history.extend((self._sign * value, self._sign * float(losses.mean())))
        if value < self._best_value:
            self._set_best(self._points[known[best]], value)

    def _set_best(self, point: Array, value: float) -> None:
        self._best, self._best_value, self._leader = point.copy(), value, self._strategy

    def _reached(self) -> str | None:
        """Return ``target``, ``budget`` or ``seconds`` if it is reached, or None."""
        target, budget = self._options.target, self._options.budget
        if target is not None and self._best_value <= self._sign * target:
            return "target"
        if budget is not None and self.evaluations >= budget:
            return "budget"
        return self._limits.reached(self.progress)

    def _record(self, values: Array, scales: tuple[float, float]) -> None:
        if not self._recorders:
            return
        outcome = Outcome(values, values, values, None)
        row = make_row(outcome, None, self.progress, self._strategy, scales=scales, rank=None, seconds=0.0)
        for recorder in self._recorders:
            recorder.generation(row)

    def found(self) -> Optimum:
        """Return the result so far, with copies of all arrays."""
        center = self._space.points(self._leader.center.double().numpy())
        known = len(self._best) > 0
        own = partial(torch.tensor, device="cpu") if self._space.tensors else np.array
        return Optimum(
            best=own(self._best if known else center),
            best_fitness=self._sign * self._best_value if known else math.nan,
            center=own(center),
            history=rows_of(self._history),
            evaluations=self.evaluations,
            failures=self._failures,
            restarts=self._searches - 1,
            stop_reason=self.reason or "",
            strategy=self._plan.name,
        )


def run_searches(searches: Sequence[Search], calls: FunctionCalls, limits: Limits) -> list[Optimum]:
    """Run all searches to their ends, with one call per generation for the points of all.

    Raises:
        InputError: the time limit was reached in the first generation, or no value was usable.
    """
    deadline = calls.engine.on_wait = Deadline()
    try:
        while numbers := [number for number, search in enumerate(searches) if search.reason is None]:
            going = [searches[number] for number in numbers]
            points = [search.ask() for search in going]
            deadline.set(limits.seconds_for_generation(going[0].progress))
            values = calls.values(points, numbers)
            deadline.set(None)
            first = 0
            for search, own in zip(going, points, strict=True):
                search.tell(values.part(slice(first, first := first + len(own))))
    except (KeyboardInterrupt, TimeUp) as cut:
        cut_short(searches, cut, limits)
    finally:
        deadline.set(None)
    return results(searches)


def cut_short(searches: Sequence[Search], cut: KeyboardInterrupt | TimeUp, limits: Limits) -> None:
    """End all searches in the middle of a generation.

    Raises:
        KeyboardInterrupt: the user interrupted the first generation.
        InputError: the time limit was reached in the first generation.
    """
    if not all(search.has_learned for search in searches):
        if isinstance(cut, KeyboardInterrupt):
            raise cut
        raise InputError(
            f"the time limit of {limits.seconds} s was reached in the first generation; increase `seconds`"
        ) from None
    for search in searches:
        search.reason = search.reason or ("seconds" if isinstance(cut, TimeUp) else "interrupted")


def results(searches: Sequence[Search]) -> list[Optimum]:
    """Return the results of all searches.

    Raises:
        InputError: no value was usable.
    """
    found = [search.found() for search in searches]
    if all(math.isnan(one.best_fitness) for one in found):
        raise InputError("the function returned no finite number up to 1e30, so there is nothing to optimize")
    return found
