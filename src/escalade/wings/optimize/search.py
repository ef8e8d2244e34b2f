"""The searches of one call of optimize: generation after generation, until a rule says stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from escalade.errors import Diverged, InputError
from escalade.perturbation import write_all
from escalade.recorders import Recorder, Row, of_returns
from escalade.strategies.base import Direction, Strategy
from escalade.strategies.bounds import confine
from escalade.strategies.result import FitnessHistory
from escalade.strategies.shaping import usable
from escalade.training.limits import Deadline, Limits, TimeUp
from escalade.training.notes import Notes
from escalade.training.progress import Counts, Progress
from escalade.training.view import answer_of
from escalade.wings.optimize.function_calls import FunctionCalls, Values
from escalade.wings.optimize.optimum import Optimum
from escalade.wings.optimize.space import SearchSpace
from escalade.wings.optimize.stopping import StopRules

Array = NDArray[np.float64]
Callback = Callable[[Optimum], bool | None]
Turns = Generator[Array, Values, str]
"""A search in turns: it gives the points of a generation, is sent their values, and returns why it ended."""


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
        direction: ``minimize`` or ``maximize``.
        budget: evaluations after which to stop; None for no such limit.
        target: a value as good as this ends the search; None for none.
        limits: the budget of seconds.
        recorders: who is given a row for each generation, and notes.
        callback: called with what is found so far after each generation; True stops.
        strategy: its name, for the result.
        number: of the function, where there are many: the last number of every point that it is called with.
    """

    def __init__(
        self,
        space: SearchSpace,
        direction: Direction,
        budget: int | None,
        target: float | None,
        limits: Limits,
        recorders: Sequence[Recorder],
        callback: Callback | None,
        strategy: str,
        number: int | None = None,
    ) -> None:
        self.begun = 0
        """Number of searches begun."""
        self.evaluations = self.failures = 0
        """Points whose values are known, and those of them at which the function raised."""
        self.progress = Progress()
        self._space, self._limits = space, limits
        self._sign = 1.0 if direction == "minimize" else -1.0
        self._budget, self._target = budget, target
        self._recorders, self._callback, self._strategy = recorders, callback, strategy
        self._number = number
        self._notes = Notes(recorders, self.progress, _Points())
        self._best, self._best_value = np.empty(0), math.inf  # the value is to be minimised
        self._leader: Strategy | None = None  # of the search that found the best, or the only one so far
        self._history = FitnessHistory()

    def say(self, text: str) -> None:
        """Give the recorders a note."""
        self._notes.say(text)

    def run(self, strategy: Strategy, rules: StopRules, limit: int | None) -> Turns:
        """Search until the end. ``limit`` is where it gives way to the next one."""
        self.begun += 1
        if self.begun > 1:
            self._notes.say(f"search {self.begun} begins, with population {strategy.population_size}")
        if not len(self._best):
            self._leader = strategy
        while True:
            reason = yield from self._generation(strategy, rules)
            if reason is not None:
                return reason
            if limit is not None and self.evaluations >= limit:
                return "limit"

    def _generation(self, strategy: Strategy, rules: StopRules) -> Generator[Array, Values, str | None]:
        began = time.monotonic()
        points = self._space.points(write_all(strategy.sample()))
        told = yield points if self._number is None else _numbered(points, self._number)
        values = told.numbers
        self.evaluations += len(values)
        self.failures += int(told.failed.sum())
        if told.words:
            self._notes.say(f"{told.words}: such points count as the worst", kind="failed")
        self._remember(strategy, points, values)
        scales = strategy.sigma, strategy.lr  # this generation's: tell moves them on
        try:
            strategy.tell(values)
        except Diverged as problem:
            self._notes.say(str(problem))
            return self._reached() or "diverged"
        confine(strategy, self._space.widest)
        self.progress.generation += 1
        self.progress.updates += Counts(episodes=len(values), seconds=time.monotonic() - began)
        self._record(strategy, values, scales)
        reason = "callback" if self._stopped() else rules.check(self._sign * values)
        return self._reached() or reason

    def _stopped(self) -> bool:
        """Tell whether the callback stops the search: by True, or by StopIteration as SciPy's do."""
        try:
            return self._callback is not None and bool(answer_of(self._callback(self.found(""))))
        except StopIteration:
            return True

    def _remember(self, strategy: Strategy, points: Array, values: Array) -> None:
        usables = np.where(usable(values), self._sign * values, np.nan)
        if np.isnan(usables).all():
            self._history.append(math.nan, math.nan)
            return
        best = int(np.nanargmin(usables))
        self._history.append(self._sign * float(usables[best]), self._sign * float(np.nanmean(usables)))
        if usables[best] < self._best_value:
            self._best, self._best_value = points[best].copy(), float(usables[best])
            self._leader = strategy

    def _reached(self) -> str | None:
        """``target``, ``budget`` or ``seconds``, once one of them is reached."""
        if self._target is not None and self._best_value <= self._sign * self._target:
            return "target"
        if self._budget is not None and self.evaluations >= self._budget:
            return "budget"
        return self._limits.reached(self.progress)

    def _record(self, strategy: Strategy, values: Array, scales: tuple[float, float]) -> None:
        if not self._recorders:
            return
        row = Row(
            generation=self.progress.generation,
            episodes=self.evaluations,
            env_steps=None,
            seconds=round(self.progress.total.seconds, 4),
            episode_length_mean=None,
            eval_return_mean=None,
            unperturbed_rank=None,
            sigma=scales[0],
            lr=scales[1],
            update_ratio=strategy.update_ratio,
            steps_per_second=None,
            eval_steps=None,
            **of_returns(values),
        )
        for recorder in self._recorders:
            recorder.generation(row)

    def found(self, reason: str) -> Optimum:
        """Return the best so far; its arrays are the caller's own."""
        assert self._leader is not None  # there is no result before the first search
        center = self._space.points(self._leader.center.double().numpy())
        known = len(self._best) > 0
        own = partial(torch.tensor, device="cpu") if self._space.tensors else np.array
        return Optimum(
            best=own(self._best if known else center),
            best_fitness=self._sign * self._best_value if known else math.nan,
            center=own(center),
            history=self._history.rows,
            evaluations=self.evaluations,
            failures=self.failures,
            restarts=self.begun - 1,
            stop_reason=reason,
            strategy=self._strategy,
        )


def _numbered(points: Array, number: int) -> Array:
    return np.column_stack([points, np.full(len(points), float(number))])


def turn(searches: Sequence[tuple[Search, Turns]], calls: FunctionCalls, limits: Limits) -> list[str]:
    """Turn searches side by side, one call for the points of all, until each has ended; why each did.

    Raises:
        InputError: the time was up inside the first generation.
    """
    reasons: dict[int, str] = {}
    deadline = calls.engine.on_wait = Deadline()
    try:
        waiting = {number: next(turns) for number, (_, turns) in enumerate(searches)}
        while waiting:
            progress = searches[next(iter(waiting))][0].progress
            deadline.set(limits.seconds_for_generation(progress))
            told = calls.values(np.concatenate(list(waiting.values())))
            deadline.set(None)
            first = 0
            for number, points in list(waiting.items()):
                rows = slice(first, first := first + len(points))
                try:
                    waiting[number] = searches[number][1].send(told.part(rows))
                except StopIteration as ended:
                    reasons[number] = ended.value
                    del waiting[number]
    except RuntimeError as problem:
        if isinstance(problem.__cause__, StopIteration):  # of a start or a recorder, within a generator
            raise problem.__cause__ from None
        raise
    except (KeyboardInterrupt, TimeUp) as cut:
        _check_begun(searches, cut, limits)
        reason = "seconds" if isinstance(cut, TimeUp) else "interrupted"
        return [reasons.get(number, reason) for number in range(len(searches))]
    finally:
        deadline.set(None)
    return [reasons[number] for number in range(len(searches))]


def _check_begun(
    searches: Sequence[tuple[Search, Turns]], cut: KeyboardInterrupt | TimeUp, limits: Limits
) -> None:
    """Raise where a search that was cut has found nothing yet."""
    if all(search.evaluations for search, _ in searches):
        return
    if isinstance(cut, KeyboardInterrupt):
        raise cut
    raise InputError(
        f"seconds {limits.seconds} ended inside the first generation, so nothing is found: give it more"
    ) from None
