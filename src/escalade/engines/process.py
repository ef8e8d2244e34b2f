"""The engine's view of a worker process, and the orderly shutdown of several."""

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
_MARGIN_SECONDS = 0.5  # for a worker to exit by itself after CLOSE_SECONDS


class Worker:
    """One process, and the engine's ends of its two pipes.

    Raises:
        InputError: the process cannot be started.
    """

    def __init__(self, factory: Factory, name: str = "") -> None:
        self.name = name
        """Its number among the workers. A replacement has the same name."""
        self.info: dict[str, Any] = {}
        """:meth:`Work.info`. Empty until the work is built."""
        self.items: set[int] = set()
        """Unfinished items of the worker."""
        self.has_job = False
        """True once the current job has been sent to it."""
        self.reset_silence()
        context = get_context("forkserver")
        self.messages, theirs = context.Pipe()
        their_lifeline, self._lifeline = context.Pipe(duplex=False)
        _workers.add(self)
        self._process = WorkerProcess(serve, (ByValue(factory), theirs, their_lifeline))
        try:
            self._process.start()
        except (OSError, EOFError, MemoryError) as problem:
            text = f"a worker process could not be started ({one_line(problem)}): lower `workers`"
            raise InputError(text) from problem
        theirs.close()
        their_lifeline.close()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid or 0

    def reset_silence(self) -> None:
        """Restart the count of silent seconds, after a heartbeat or while the worker is idle."""
        self.silent_seconds = 0.0
        self.next_note = _FIRST_NOTE_SECONDS

    def close_pipes(self) -> None:
        """Close the pipes, upon which the worker closes its work and exits."""
        self.messages.close()
        self._lifeline.close()

    def join(self, seconds: float | None) -> int | None:
        """Wait up to ``seconds`` for the process to exit.

        Returns:
            The exit code, or None if it is still running.
        """
        self._process.join(seconds)
        return self._process.exitcode

    def kill(self) -> int | None:
        """Kill the process and return its exit code."""
        self.close_pipes()
        self._process.kill()
        return self.join(None)


def stop_all(workers: list[Worker]) -> int | None:
    """Shut down workers and empty the list.

    They close their work at the same time.

    Returns:
        The exit code of the last worker.
    """
    ending, workers[:] = list(workers), []
    for worker in ending:
        worker.close_pipes()
    deadline = time.monotonic() + CLOSE_SECONDS + _MARGIN_SECONDS
    code = None
    for worker in ending:
        code = worker.join(max(0.0, deadline - time.monotonic()))
        if code is None:
            code = worker.kill()
    return code


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


def _close_inherited_pipes() -> None:
    """Close the pipes to workers in a forked child; open copies would hide the owner's exit from workers."""
    for worker in list(_workers):
        worker.close_pipes()


os.register_at_fork(after_in_child=_close_inherited_pipes)
