"""Searches whose workers never wait for one another: each result is told when it comes."""

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

_LOOK_SECONDS = 0.2  # between two looks at the time
_PER_WORKER = 1.5  # members of a generation: with fewer, most results are of a distribution that is gone


def asynchronous_population(dimension: int, workers: int) -> int:
    """Return the number of results that make a generation, if it is not given."""
    return max(default_population(dimension), int(_PER_WORKER * workers))


def check_asynchronous(workers: int, *, vectorized: bool, noisy: bool) -> None:
    """Refuse options that have no meaning in an asynchronous search.

    Raises:
        InputError: one is given, or there are no workers.
    """
    if vectorized or noisy:
        name = "vectorized" if vectorized else "noisy"
        raise InputError(f"{name}=True does not go with asynchronous=True: leave one of them out")
    if workers < 1:
        raise InputError(f"asynchronous=True with workers={workers} has no effect: use workers=2 or more")


class Asked(NamedTuple):
    """A point whose value is awaited."""

    search: int
    """Number of the search that it is of, 1 for the first."""
    number: int
    point: Array
    """Shape (1, dimension), as the function takes it."""


class AsynchronousSearch(Search):
    """A search that takes one value at a time; a generation ends when it has as many as members."""

    def _begin(self, start: Start) -> None:
        super()._begin(start)
        if not isinstance(self._strategy, InjectedStrategy):
            raise InputError("asynchronous=True is for strategy cma-es or ma-es: use one of them")
        self._single: InjectedStrategy = self._strategy
        self._told: list[tuple[Asked, float]] = []
        self._asked = time.monotonic()

    def ask_one(self) -> Asked:
        """Return the next point."""
        number, member = self._single.ask_one()
        return Asked(self._begun, number, self._space.points(member.numpy()[None]))

    def tell_one(self, asked: Asked, values: Values) -> None:
        """Take the value of a point; that of a search that has ended is only counted."""
        self._count(values)
        if asked.search == self._begun:
            self._told.append((asked, float(values.numbers[0])))
        if len(self._told) < self._single.population_size:
            return
        if self._failures == self.evaluations:
            raise EnvironmentFailure(
                f"{values.words}, and so it was at all points: there is nothing to learn"
            )
        self._points = np.concatenate([one.point for one, _ in self._told])
        reason = self._learn(np.array([value for _, value in self._told]))
        self._told, self._asked = [], time.monotonic()
        self._end(reason)

    def _update(self, values: Array) -> None:
        for (asked, _), value in zip(self._told, values.tolist(), strict=True):
            self._single.tell_one(asked.number, value)


class _Over(Exception):
    """The search has ended, and a value is not awaited any more."""


def run_asynchronously(search: AsynchronousSearch, calls: Sequence[FunctionCalls], limits: Limits) -> Optimum:
    """Run a search until it has ended, with one point at a time for each of ``calls``.

    Raises:
        InputError: the time was up inside the first generation, or no value was usable.
    """
    ready, over, deadline, generation = threading.Event(), threading.Event(), Deadline(), -1

    def stop_if_over() -> None:
        ready.set()  # engines call this once their worker has started
        if over.is_set():
            raise _Over

    for one in calls:
        one.engine.on_wait = stop_if_over
    running: dict[Future[Values], tuple[FunctionCalls, Asked]] = {}
    idle = list(calls)
    with ThreadPoolExecutor(len(calls), thread_name_prefix="escalade-call") as pool:
        try:
            while search.reason is None:
                if search.progress.generation != generation:
                    generation = search.progress.generation
                    deadline.set(limits.seconds_for_generation(search.progress))
                for one in idle:
                    asked = search.ask_one()
                    running[pool.submit(one.values, [asked.point], [0])] = one, asked
                idle = []
                done = wait(running, _LOOK_SECONDS, FIRST_COMPLETED).done
                if ready.is_set():
                    deadline()
                for future in sorted(done, key=lambda future: running[future][1][:2]):
                    one, asked = running.pop(future)
                    idle.append(one)
                    if search.reason is None:
                        search.tell_one(asked, future.result())
        except (KeyboardInterrupt, TimeUp) as cut:
            cut_short([search], cut, limits)
        finally:
            over.set()
    return results([search])[0]
