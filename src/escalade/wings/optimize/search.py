"""The searches of one call of optimize, generation after generation until a rule says stop; their result."""

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
_NUMBERS = 8  # of the best point in a notebook


@dataclass(frozen=True)
class Optimum:
    """The result of :func:`escalade.optimize`.

    ``best`` is the best point, of the kind that ``x0`` is (a numpy array, or a tensor), float64, shape
    (dimension,), within the bounds; ``best_fitness`` is what the function gave there. ``center`` is the last
    centre of the search that found it, of the same kind: often the better answer where the function is noisy.
    With ``noisy=True``, ``best`` is that centre, ``best_fitness`` the mean of fresh evaluations there, and
    ``interval`` the ends of the mean's 95 % interval. Before they are made, as in a callback,
    ``best_fitness`` is the mean of the last generation, and ``interval`` is None.
    With ``constraints``, ``best`` is the best ``feasible`` point, or the least violated one, and
    ``violations`` holds by how much it violates each constraint, 0 if it is met, shape (constraints,).
    ``history`` holds the best and the mean fitness of each generation, shape (generations, 2).
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

_OVER = ("target", "budget", "seconds", "callback")  # after these no search begins again


class _Points:
    """The words of notes of a search."""

    subject = "point"
    unit = "points"
    forgives: str | None = None
    tie_advice = ""


class Search:
    """One search after another on the same function, and the best that they found.

    Args:
        space: where searches begin, and how members become points.
        plan: the strategy, and when a search begins again.
        options: budget, target, direction and tolerance are read here.
        limits: the budget of seconds.
        recorders: get a row for each generation, and notes.
        callback: called with what is found so far after each generation; True stops.
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
        """The reason that it ended; None while it goes on."""
        self.evaluations = 0
        """Points whose values are known."""
        self.progress = Progress()
        self._failures = self._begun = 0
        self._new = 0  # evaluations since the last update
        self._space, self._plan, self._options, self._limits = space, plan, options, limits
        self._sign = 1.0 if options.direction == "minimize" else -1.0
        self._recorders, self._callback = recorders, callback
        self.notes = Notes(recorders, self.progress, _Points())
        self._best, self._best_value = np.empty(0), math.inf  # the value is to be minimised
        self._history = array("d")  # the best and the mean of each generation
        self._begin(next(plan.starts))

    def _begin(self, start: Start) -> None:
        self._strategy = self._space.make(self._plan.factory, start, self._begun)
        self._begun += 1
        if self._begun > 1:
            self.notes.say(f"search {self._begun} begins, with population {self._strategy.population_size}")
        boxed = np.isfinite(self._space.widest)
        self._rules = StopRules(self._strategy, self._options.tolerance, boxed)
        self._before = self.evaluations  # those of the searches before this one
        self._limit = math.inf if start.budget is None else self._before + start.budget
        if not len(self._best):
            self._leader = self._strategy  # of the search that found the best, or the only one so far

    def ask(self) -> Array:
        """Return the points of the next generation."""
        self._asked = time.monotonic()
        self._points = self._space.points(write_all(self._strategy.sample()))
        return self._points

    def tell(self, values: Values) -> None:
        """Take the values of those points, and begin another search if this one is over."""
        self._count(values)
        self._end(self._learn(values.numbers))

    def _count(self, told: Values) -> None:
        self.evaluations += len(told.numbers)
        self._new += len(told.numbers)
        if told.words:
            self._failures += int(told.failed.sum())
            self.notes.say(f"{told.words}: such points count as the worst", kind="failed")

    def _end(self, reason: str | None) -> None:
        """Begin another search if there is a reason to end this one; without another, all end."""
        if reason is None or reason in _OVER:
            self.reason = reason
            return
        try:
            start = self._plan.starts.send(self.evaluations - self._before)
        except StopIteration:
            self.reason = reason
        else:
            self._begin(start)

    def _learn(self, values: Array) -> str | None:
        """Take a value for each member; return the reason to end this search, if there is one."""
        strategy = self._strategy
        self._remember(values)
        # This generation's: tell moves them on.
        scales = (strategy.sigma, strategy.lr) if self._recorders else (math.nan, math.nan)
        try:
            self._update(values)
        except Diverged as problem:
            self.notes.say(str(problem))
            return self._reached() or "diverged"
        if self._space.confines:
            confine(strategy, self._space.widest, self._space.narrowest)
        self.progress.generation += 1
        self.progress.updates += Counts(episodes=self._new, seconds=time.monotonic() - self._asked)
        self._new = 0
        self._record(values, scales)
        reason = "callback" if self._stopped() else self._rules.check(self._sign * values)
        return self._reached() or reason or ("limit" if self.evaluations >= self._limit else None)

    def _update(self, values: Array) -> None:
        self._strategy.tell(values)

    def _stopped(self) -> bool:
        """Return whether the callback stops the search: by True, or by StopIteration as SciPy's do."""
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
            self._lead(self._points[known[best]], value)

    def _lead(self, point: Array, value: float) -> None:
        self._best, self._best_value, self._leader = point.copy(), value, self._strategy

    def _reached(self) -> str | None:
        """``target``, ``budget`` or ``seconds``, once one of them is reached."""
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
        """Return the best so far; its arrays are the caller's own."""
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
            restarts=self._begun - 1,
            stop_reason=self.reason or "",
            strategy=self._plan.name,
        )


def run_searches(searches: Sequence[Search], calls: FunctionCalls, limits: Limits) -> list[Optimum]:
    """Run searches side by side until each has ended, with one call for the points of all.

    The function takes the numbers of the searches beside the points if ``calls`` were made for that.

    Raises:
        InputError: the time was up inside the first generation, or no value was usable.
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
    """End all searches inside a generation.

    Raises:
        KeyboardInterrupt: the user ended them before anything was found.
        InputError: the time did.
    """
    if not all(search.evaluations for search in searches):
        if isinstance(cut, KeyboardInterrupt):
            raise cut
        raise InputError(
            f"seconds {limits.seconds} ended inside the first generation, so nothing is found: give more"
        ) from None
    for search in searches:
        search.reason = search.reason or ("seconds" if isinstance(cut, TimeUp) else "interrupted")


def results(searches: Sequence[Search]) -> list[Optimum]:
    """Return what each search found.

    Raises:
        InputError: no value was usable.
    """
    found = [search.found() for search in searches]
    if all(math.isnan(one.best_fitness) for one in found):
        raise InputError("the function gave no finite number up to 1e30 at all: there is nothing to optimise")
    return found
