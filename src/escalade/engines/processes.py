"""The engine of worker processes on this machine: starts, supervises and replaces them."""

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
_MOST_DEATHS = 20  # in a row without a result, in addition to one for each worker


class ProcessEngine(Dispatcher):
    """The engine ``local``: runs items on ``workers`` processes, each with work that ``factory`` makes.

    Items are distributed evenly. Items that do not fit a worker's slots wait here for the first free worker.
    A worker that dies, or sends no heartbeat for ``step_timeout`` seconds, is replaced, and its unfinished
    items are distributed again.

    Engine and worker would deadlock if both sent more than fits the pipe. A job is therefore sent only to
    workers without items, which are reading. A worker that still runs a cancelled job is replaced.

    Raises:
        InputError: the work cannot be sent to processes, or this process cannot start processes.
    """

    reports = "workers"

    def __init__(self, factory: Factory, options: EngineOptions) -> None:
        super().__init__(options.steps)
        warm_up()
        self._factory = factory
        self._job: Any = None
        self._message: JobMessage | None = None  # the job, pickled once for all workers
        self._waiting: deque[int] = deque()
        self._deaths = 0  # since the last result
        self._silence = Silence(options.step_timeout)
        self._reported = 0.0
        self._workers: list[Worker] = []
        # In case close is not called: workers ignore the SIGTERM that multiprocessing sends at exit.
        self._end = Finalize(self, stop_all, args=(self._workers,), exitpriority=100)
        try:
            for number in range(options.workers):
                self._workers.append(Worker(self._factory, str(number + 1)))
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers, for monitoring."""
        return [worker.pid for worker in self._workers]

    def run(self, job: Any, items: int) -> Results:
        return self.run_some(job, range(items))

    def run_some(self, job: Any, items: Sequence[int]) -> Results:
        """Run some items of a job and return their results."""
        self._reported = self._reported or time.monotonic()
        self._replace_busy()
        self._job, self._message, self._results = job, JobMessage(job), Results(len(items))
        count = len(self._workers)
        # A stride of the number of workers: neighboring items, often alike in length, go to different ones.
        self._waiting = deque(item for first in range(count) for item in items[first::count])
        self._share = -(-len(items) // count)
        self._silence.begin()
        for worker in self._workers:
            worker.has_job = False
            self._hand_out(worker)
        results = self._gather()
        self._job = self._message = None  # frees memory
        now = time.monotonic()
        self._report.seconds += now - self._reported
        self._reported = now
        return results

    def close(self) -> None:
        self._end()

    def _infos(self) -> list[dict[str, Any]]:
        return [worker.info for worker in self._workers if worker.info]

    def _replace_busy(self) -> None:
        """Replace the workers that still run a cancelled job."""
        self._waiting.clear()
        busy = [worker for worker in self._workers if worker.items]
        stop_all(list(busy))
        for worker in busy:
            worker.items.clear()
            self._replace(worker)

    def _hand_out(self, worker: Worker) -> None:
        """Send a worker as many items as it has room for."""
        room = self._room(worker)
        if room <= 0:
            return
        items = [self._waiting.popleft()]
        while len(items) < room and self._waiting and self._waiting[0] not in self._silence.suspects:
            items.append(self._waiting.popleft())
        worker.items.update(items)
        with suppress(ConnectionError):  # the worker is dead; reading its pipe reports it next
            if not worker.has_job and self._message is not None:
                worker.has_job = True
                self._message.send(worker.messages)
            worker.messages.send(("items", items))

    def _room(self, worker: Worker) -> int:
        """Return the number of further items that a worker may receive."""
        if not worker.info or not self._waiting:
            return 0
        suspects = self._silence.suspects
        if suspects and (self._waiting[0] in suspects or worker.items & suspects):
            return 0 if worker.items else 1  # alone, so that the cause can be identified
        return max_items_per_worker(self._share, worker.info) - len(worker.items)

    def _listen(self) -> None:
        by_connection = {worker.messages: worker for worker in self._workers}
        # With a timeout: a signal that arrives just before the wait would not interrupt it.
        for ready in wait(list(by_connection), _LISTEN_SECONDS):
            worker = by_connection[ready]  # type: ignore[index]
            try:
                message = worker.messages.recv()
            except (EOFError, OSError):
                self._replace_dead(worker)
                continue
            worker.reset_silence()
            self._receive(worker, *message)
            self._hand_out(worker)
        for worker in self._silence.overdue(self._workers, self._job, self.on_note):
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

    def _replace_dead(self, worker: Worker) -> None:
        self._deaths += 1
        if self._deaths > len(self._workers):  # more than one event that killed all: perhaps one of its items
            self._silence.suspects |= worker.items
        code = stop_all([worker])
        # One event, such as a full memory, may kill all workers at once and is not counted against them.
        if self._deaths >= len(self._workers) + _MOST_DEATHS:
            where = f", in {describe(self._job, min(worker.items))}," if len(worker.items) == 1 else ""
            raise EngineFailure(
                f"workers died {self._deaths} times in a row without finishing anything "
                f"(the last{where} {_describe_exit(code)}): run with `workers=0` to see why"
            )
        self._replace(worker)

    def _replace(self, worker: Worker) -> None:
        """Start a replacement, and distribute the unfinished items again."""
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


def _describe_exit(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was killed by signal {-code}"
    return f"exited with code {code}"
