"""Worker processes on this machine: started once, supervised, replaced when they die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import types
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from multiprocessing.util import get_temp_dir
from typing import Any

from escalade.engines import server
from escalade.engines.base import EngineOptions, Factory
from escalade.engines.shares import most_in_hand
from escalade.engines.worker import ByValue, serve
from escalade.errors import EngineFailure

_LISTEN_SECONDS = 0.2
_MOST_DEATHS = 20  # in a row, with not one result between them
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def warm_up(modules: list[str]) -> None:
    """Start the server that workers are forked from, and let it import ``modules`` meanwhile.

    Returns at once. Workers then start in milliseconds, also when one has to be replaced, and
    share the memory of what they import. Modules that are missing are skipped.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([server.__name__, "escalade.engines.worker", *modules])
    # BLAS reads these when it is loaded, and one thread a worker is all that N workers need.
    told = {key: value for key, value in _ONE_THREAD.items() if key not in os.environ}
    told[server.FOLDER] = get_temp_dir()
    os.environ.update(told)
    # Now, for its start lifts the mask that is set below, and the server's start would start it.
    resource_tracker.ensure_running()
    # The server and its workers inherit the mask: Ctrl-C is their owner's business, from the start.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        with _main_left_alone():
            forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for key in told:
            del os.environ[key]


def start(factory: Factory, options: EngineOptions) -> ProcessEngine:
    """The engine ``local``."""
    return ProcessEngine(factory, options.workers)


class ProcessEngine:
    """Runs items on ``workers`` processes, each with ``factory``'s work.

    Items are handed out evenly; what does not fit a worker's slots waits here and goes to
    whoever is free first. When a worker dies, its unfinished items are handed out again and
    another takes its place.
    """

    def __init__(self, factory: Factory, workers: int) -> None:
        warm_up([])
        self._factory = factory
        self._jobs = 0
        self._deaths = 0  # since the last result
        self._caution = 0  # how often shares are halved: deaths, less the results since
        self._workers = [_Worker(factory) for _ in range(workers)]

    @property
    def info(self) -> dict[str, Any]:
        while not any(worker.info for worker in self._workers):
            self._hear({})
        return next(worker.info for worker in self._workers if worker.info)

    def run(self, job: Any, items: int) -> list[Any]:
        results = self.run_some(job, range(items))
        return [results[item] for item in range(items)]

    def run_some(self, job: Any, items: Sequence[int]) -> dict[int, Any]:
        """Results of some of a job's items, by item."""
        self._jobs += 1
        self._job = job
        count = len(self._workers)
        # Every count-th item together: long and short episodes mix, and neighbours do not bunch.
        self._waiting = deque(item for first in range(count) for item in items[first::count])
        self._share = -(-len(items) // count)
        results: dict[int, Any] = {}
        for worker in self._workers:
            worker.told = 0
            worker.items.clear()
            self._hand_out(worker)
        while len(results) < len(items):
            self._hear(results)
        return results

    def close(self) -> None:
        for worker in self._workers:
            worker.stop()
        self._workers = []

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers, for whoever watches them."""
        return [worker.process.pid for worker in self._workers if worker.process.pid]

    def _hand_out(self, worker: _Worker) -> None:
        """Top a worker up to as much as it can be busy with."""
        if not worker.info or not self._waiting:
            return
        most = most_in_hand(self._share, worker.info)
        # Where workers die faster than a share is done, a smaller one still gets through.
        room = max(1, most >> self._caution) - len(worker.items)
        if room <= 0:
            return
        items = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
        worker.items.update(items)
        try:
            if worker.told != self._jobs:
                worker.told = self._jobs
                worker.messages.send(("job", self._jobs, self._job))
            worker.messages.send(("items", self._jobs, items))
        except OSError:
            pass  # it is dead: its end of the pipe says so next, and the items go back

    def _hear(self, results: dict[int, Any]) -> None:
        """Wait for news from any worker, and act on it."""
        by_connection = {worker.messages: worker for worker in self._workers}
        # Not for ever: a signal that arrives just before the wait begins would not end it.
        for ready in wait(list(by_connection), _LISTEN_SECONDS):
            worker = by_connection[ready]  # type: ignore[index]
            try:
                kind, *content = worker.messages.recv()
            except (EOFError, OSError):
                self._replace(worker)
                continue
            if kind == "failed":
                self._raise(*content)
            elif kind == "ready":
                worker.info = content[0]
            elif content[0] == self._jobs:
                self._deaths, self._caution = 0, max(0, self._caution - 1)
                for item, result in content[1]:
                    worker.items.discard(item)
                    results[item] = result
            if self._jobs:
                self._hand_out(worker)

    def _replace(self, worker: _Worker) -> None:
        self._deaths += 1
        self._caution += 1
        code = worker.stop()
        if self._deaths >= _MOST_DEATHS:
            raise EngineFailure(
                f"workers died {self._deaths} times in a row without finishing anything "
                f"(the last {_how(code)}): run with --workers 0 to see why"
            )
        self._workers[self._workers.index(worker)] = replacement = _Worker(self._factory)
        if self._jobs:
            self._waiting.extendleft(sorted(worker.items, reverse=True))
            for other in self._workers:
                if other is not replacement:
                    self._hand_out(other)

    def _raise(self, kind: type[Exception] | None, text: str, trace: str) -> None:
        if kind is not None:
            raise kind(text)
        problem = EngineFailure(f"a worker failed: {text}")
        problem.add_note(trace)
        raise problem


class _Worker:
    """One process, and this side's ends of its two pipes."""

    def __init__(self, factory: Factory) -> None:
        context = multiprocessing.get_context("forkserver")
        self.info: dict[str, Any] = {}
        self.items: set[int] = set()  # handed out, not yet done
        self.told = 0  # number of the last job it was told of
        self.messages, theirs = context.Pipe()
        their_lifeline, self.lifeline = context.Pipe(duplex=False)
        self.process: ForkServerProcess = context.Process(
            target=serve, args=(ByValue(factory), theirs, their_lifeline), daemon=True
        )
        with _main_left_alone():
            self.process.start()
        theirs.close()
        their_lifeline.close()

    def stop(self) -> int | None:
        """End the process whatever it is doing; its exit code."""
        self.messages.close()
        self.lifeline.close()
        self.process.join(0.5)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        return self.process.exitcode


@contextmanager
def _main_left_alone() -> Iterator[None]:
    """Keep multiprocessing from importing the user's script again in every process it starts.

    Workers get all they need by value, so a five-line script needs no ``__main__`` guard.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was ended by signal {-code}"
    return f"exited with code {code}"
