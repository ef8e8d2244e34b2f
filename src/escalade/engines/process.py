"""One worker process as its engine sees it, and the orderly end of several."""

from __future__ import annotations

import os
import time
import weakref
from multiprocessing import get_context
from typing import Any

from escalade.engines.base import Factory
from escalade.engines.fork_server import WorkerProcess
from escalade.engines.worker import CLOSE_SECONDS, ByValue, serve
from escalade.errors import InputError, one_line

_FIRST_NOTE_SECONDS = 30.0  # of silence
_MARGIN_SECONDS = 0.5  # for a worker to end by itself, after its time to close is over


class Worker:
    """One process, and this side's ends of its two pipes.

    Raises:
        InputError: there may be no further process.
    """

    def __init__(self, factory: Factory, name: str = "") -> None:
        self.name = name
        """Number of its place among the workers; the worker that replaces it has the same."""
        self.info: dict[str, Any] = {}
        """:meth:`Work.info`; empty until the work is built."""
        self.items: set[int] = set()
        """Items given to the worker and not yet done."""
        self.has_job = False
        """True once it was sent the job that runs."""
        self.heard()
        context = get_context("forkserver")
        self.messages, theirs = context.Pipe()
        their_lifeline, self._lifeline = context.Pipe(duplex=False)
        _workers.add(self)
        self._process = WorkerProcess(serve, (ByValue(factory), theirs, their_lifeline))
        try:
            self._process.start()
        except (OSError, EOFError, MemoryError) as problem:
            said = f"a worker process could not be started ({one_line(problem)})"
            raise InputError(f"{said}: lower `workers`") from problem
        theirs.close()
        their_lifeline.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid or 0

    def heard(self) -> None:
        """Begin to count anew: it gave a sign of life, or has nothing to do."""
        self.silent_seconds = 0.0
        self.next_note = _FIRST_NOTE_SECONDS

    def hang_up(self) -> None:
        """Close the pipes: the worker closes its work and ends by itself."""
        self.messages.close()
        self._lifeline.close()

    def join(self, seconds: float | None) -> int | None:
        """Wait for its end; its exit code, None while it goes on."""
        self._process.join(seconds)
        return self._process.exitcode

    def kill(self) -> int | None:
        """End the process whatever it is doing; its exit code."""
        self.hang_up()
        self._process.kill()
        return self.join(None)


def stop_all(workers: list[Worker]) -> int | None:
    """End workers, and forget them: all of them are given the same time to close their work.

    Returns:
        The exit code of the last.
    """
    ending, workers[:] = list(workers), []
    for worker in ending:
        worker.hang_up()
    deadline = time.monotonic() + CLOSE_SECONDS + _MARGIN_SECONDS
    code = None
    for worker in ending:
        code = worker.join(max(0.0, deadline - time.monotonic()))
        if code is None:
            code = worker.kill()
    return code


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    """Close the pipes to workers in a forked child: while it lives, they would not see their owner end."""
    for worker in list(_workers):
        worker.hang_up()


os.register_at_fork(after_in_child=_leave_to_the_parent)
