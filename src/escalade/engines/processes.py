"""Worker processes on this machine: started once, supervised, replaced when they die."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.util import Finalize
from typing import Any

from escalade.engines.base import EngineOptions, Factory, describe
from escalade.engines.dispatch import Dispatcher, NodeReport, max_items_per_worker
from escalade.engines.fork_server import warm_up
from escalade.engines.messages import JobMessage
from escalade.engines.process import Worker, stop_all
from escalade.engines.results import Results
from escalade.engines.silence import Silence
from escalade.errors import EngineFailure

_LISTEN_SECONDS = 0.2
_MOST_DEATHS = 20  # in a row, beyond one of each worker, with not one result between them


class ProcessEngine(Dispatcher):
    """The engine ``local``: runs items on ``workers`` processes, each with ``factory``'s work.

    Items are handed out evenly; what does not fit a worker's slots waits here and goes to
    whoever is free first. When a worker dies, its unfinished items are handed out again and
    another takes its place; so it is when it gives no sign of life for ``step_timeout`` seconds.

    This side and a worker's may never both be sending what does not fit the pipe, so a job goes only to
    workers that read: those without items. One that is still inside a job that was given up is replaced.

    Raises:
        InputError: the work cannot be sent to processes, or this process may have no children.
    """

    reports = "workers"

    def __init__(self, factory: Factory, options: EngineOptions) -> None:
        super().__init__(options.steps)
        warm_up()
        self._factory = factory
        self._job: Any = None
        self._message: JobMessage | None = None  # the job as workers receive it, pickled once for all
        self._waiting: deque[int] = deque()
        self._deaths = 0  # since the last result
        self._silence = Silence(options.step_timeout)
        self._reported = 0.0
        self._workers: list[Worker] = []
        # Also when the owner forgets: workers ignore SIGTERM, with which multiprocessing would end them.
        self._end = Finalize(self, stop_all, args=(self._workers,), exitpriority=100)
        try:
            for number in range(options.workers):
                self._workers.append(Worker(self._factory, str(number + 1)))
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers, for whoever watches them."""
        return [worker.pid for worker in self._workers]

    def run(self, job: Any, items: int) -> Results:
        return self.run_some(job, range(items))

    def run_some(self, job: Any, items: Sequence[int]) -> Results:
        """Results of some of a job's items."""
        self._reported = self._reported or time.monotonic()
        self._replace_busy()
        self._job, self._message, self._results = job, JobMessage(job), Results(len(items))
        count = len(self._workers)
        # Every count-th item together: long and short episodes mix, and neighbours do not bunch.
        self._waiting = deque(item for first in range(count) for item in items[first::count])
        self._share = -(-len(items) // count)
        self._silence.begin()
        for worker in self._workers:
            worker.has_job = False
            self._hand_out(worker)
        results = self._gather()
        self._job = self._message = None  # which may be large
        now = time.monotonic()
        self._report.seconds += now - self._reported
        self._reported = now
        return results

    def close(self) -> None:
        self._end()

    def _infos(self) -> list[dict[str, Any]]:
        return [worker.info for worker in self._workers if worker.info]

    def _replace_busy(self) -> None:
        """Replace the workers that are still inside a job that was given up."""
        self._waiting.clear()
        busy = [worker for worker in self._workers if worker.items]
        stop_all(list(busy))
        for worker in busy:
            worker.items.clear()
            self._replace(worker)

    def _hand_out(self, worker: Worker) -> None:
        """Top a worker up to as much as it can be busy with."""
        room = self._room(worker)
        if room <= 0:
            return
        items = [self._waiting.popleft()]
        while len(items) < room and self._waiting and self._waiting[0] not in self._silence.suspects:
            items.append(self._waiting.popleft())
        worker.items.update(items)
        with suppress(ConnectionError):  # it is dead: its end of the pipe says so next
            if not worker.has_job and self._message is not None:
                worker.has_job = True
                self._message.send(worker.messages)
            worker.messages.send(("items", items))

    def _room(self, worker: Worker) -> int:
        """The number of further items that a worker may be given."""
        if not worker.info or not self._waiting:
            return 0
        suspects = self._silence.suspects
        if suspects and (self._waiting[0] in suspects or worker.items & suspects):
            return 0 if worker.items else 1  # alone, so that it is known which one it was
        return max_items_per_worker(self._share, worker.info) - len(worker.items)

    def _listen(self) -> None:
        by_connection = {worker.messages: worker for worker in self._workers}
        # Not for ever: a signal that arrives just before the wait begins would not end it.
        for ready in wait(list(by_connection), _LISTEN_SECONDS):
            worker = by_connection[ready]  # type: ignore[index]
            try:
                message = worker.messages.recv()
            except (EOFError, OSError):
                self._bury(worker)
                continue
            worker.heard()
            self._receive(worker, *message)
            self._hand_out(worker)
        for worker in self._silence.look(self._workers, self._job, self.on_note):
            worker.kill()
            self._replace(worker)

    def _receive(self, worker: Worker, kind: str, *content: Any) -> None:
        if kind == "failed":
            self._raise(*content)
        elif kind == "ready":
            worker.info = content[0]
        elif kind == "results":
            results, busy_seconds = content
            self._deaths = 0
            part = self._report.nodes.setdefault(worker.name, NodeReport(worker.name, workers=1))
            self._take_in(part, results, busy_seconds)
            done = {int(item) for items, _ in results.in_batches() for item in items}
            worker.items -= done
            self._silence.suspects -= done

    def _bury(self, worker: Worker) -> None:
        """Replace a worker that died."""
        self._deaths += 1
        if self._deaths > len(self._workers):  # not one event that ended them all: one of its items, perhaps
            self._silence.suspects |= worker.items
        code = stop_all([worker])
        # One event may end all workers at once, however many there are: it is not theirs.
        if self._deaths >= len(self._workers) + _MOST_DEATHS:
            where = f", in {describe(self._job, min(worker.items))}," if len(worker.items) == 1 else ""
            raise EngineFailure(
                f"workers died {self._deaths} times in a row without finishing anything "
                f"(the last{where} {_how(code)}): run with `workers=0` to see why"
            )
        self._replace(worker)

    def _replace(self, worker: Worker) -> None:
        """Start another worker, and hand out again what this one had not finished."""
        self._workers[self._workers.index(worker)] = Worker(self._factory, worker.name)
        self._waiting.extendleft(sorted(worker.items, reverse=True))
        for other in self._workers:
            self._hand_out(other)

    def _raise(self, kind: type[Exception] | None, text: str, trace: str) -> None:
        if kind is not None:
            raise kind(text)
        problem = EngineFailure(f"a worker failed: {text}")
        problem.add_note(trace)
        raise problem


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was ended by signal {-code}"
    return f"exited with code {code}"
