"""Asynchronous searches: workers never wait for each other, and each result is used when it arrives."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import NamedTuple

import numpy as np

from escalade.errors import EnvironmentFailure, InputError
from escalade.strategies.injected import InjectedStrategy
from escalade.strategies.ranking import default_population
from escalade.training.limits import Deadline, Limits, TimeUp
from escalade.wings.optimize.calls import FunctionCalls, Values
from escalade.wings.optimize.search import Array, Optimum, Search, cut_short, results
from escalade.wings.optimize.space import Start

_LOOK_SECONDS = 0.2  # between two checks of the time limit
_PER_WORKER = 1.5  # members per generation; with fewer, most results are from outdated distributions


def asynchronous_population(dimension: int, workers: int) -> int:
    """Return the default population: the number of results in a generation."""
    return max(default_population(dimension), int(_PER_WORKER * workers))


def check_asynchronous(workers: int, *, vectorized: bool, noisy: bool) -> None:
    """Check the options of an asynchronous search.

    Raises:
        InputError: an option cannot be asynchronous, or there are too few workers.
    """
    if vectorized or noisy:
        name = "vectorized" if vectorized else "noisy"
        raise InputError(f"{name}=True and asynchronous=True exclude each other; remove one")
    if workers < 1:
        raise InputError(f"asynchronous=True has no effect with workers={workers}; use at least 2 workers")


class Pending(NamedTuple):
    """A point that is being evaluated."""

    search: int
    """Number of its search, starting at 1."""
    number: int
    point: Array
    """Point in the coordinates of the function, shape (1, dimension)."""

    @property
    def name(self) -> str:
        """Name in messages."""
        return f"evaluation {self.number}" + (f" of search {self.search}" if self.search > 1 else "")


class AsynchronousSearch(Search):
    """A search that takes one value at a time. A generation ends with as many values as it has members."""

    def _begin(self, start: Start) -> None:
        super()._begin(start)
        if not isinstance(self._strategy, InjectedStrategy):
            raise InputError("asynchronous=True needs strategy cma-es or ma-es; use one of them")
        self._single: InjectedStrategy = self._strategy
        self._results: list[tuple[Pending, float]] = []
        self._generation_start = time.monotonic()

    def ask_one(self) -> Pending:
        """Return the next point."""
        number, member = self._single.ask_one()
        return Pending(self._searches, number, self._space.points(member.numpy()[None]))

    def tell_one(self, pending: Pending, values: Values) -> None:
        """Take the value of a point. If its search has already ended, the value is only counted."""
        self._count(values)
        if pending.search == self._searches:
            self._results.append((pending, float(values.numbers[0])))
        if len(self._results) < self._single.population_size:
            return
        if self._failures == self.evaluations:
            raise EnvironmentFailure(
                f"{values.message}; it failed at all points, so there is nothing to learn"
            )
        self._points = np.concatenate([one.point for one, _ in self._results])
        reason = self._learn(np.array([value for _, value in self._results]))
        self._results, self._generation_start = [], time.monotonic()
        self._end(reason)

    def _update(self, values: Array) -> None:
        for (pending, _), value in zip(self._results, values.tolist(), strict=True):
            self._single.tell_one(pending.number, value)


class _Over(Exception):
    """Raised to cancel an evaluation after the search has ended."""


def run_asynchronously(search: AsynchronousSearch, calls: Sequence[FunctionCalls], limits: Limits) -> Optimum:
    """Run a search to its end, with one point at a time for each of ``calls``.

    Raises:
        InputError: the time limit was reached in the first generation, or no value was usable.
    """
    ready, over, deadline, generation = threading.Event(), threading.Event(), Deadline(), -1

    def stop_if_over() -> None:
        ready.set()  # engines call this after their worker has started
        if over.is_set():
            raise _Over

    for one in calls:
        one.engine.on_wait = stop_if_over
    running: dict[Future[Values], tuple[FunctionCalls, Pending]] = {}
    idle = list(calls)
    with ThreadPoolExecutor(len(calls), thread_name_prefix="escalade-call") as pool:
        try:
            while search.reason is None:
                if search.progress.generation != generation:
                    generation = search.progress.generation
                    deadline.set(limits.seconds_for_generation(search.progress))
                for one in idle:
                    pending = search.ask_one()
                    running[pool.submit(one.values, [pending.point], [0], pending.name)] = one, pending
                idle = []
                done = wait(running, _LOOK_SECONDS, FIRST_COMPLETED).done
                if ready.is_set():
                    deadline()
                for future in sorted(done, key=lambda future: running[future][1][:2]):
                    one, pending = running.pop(future)
                    idle.append(one)
                    if search.reason is None:
                        search.tell_one(pending, future.result())
        except (KeyboardInterrupt, TimeUp) as cut:
            cut_short([search], cut, limits)
        finally:
            over.set()
    return results([search])[0]


def close_together(calls: Sequence[FunctionCalls]) -> None:
    """Close all engines at once; in turn, each busy worker would take seconds."""
    with ThreadPoolExecutor(len(calls)) as pool:
        list(pool.map(lambda one: one.engine.close(), calls))
