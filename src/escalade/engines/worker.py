"""A worker process: builds the work, then serves jobs until its engine goes away.

Imports little, and no torch: it is loaded before the first worker is forked.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
import traceback
from collections import deque
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from escalade.engines.base import Factory
from escalade.errors import EscaladeError

_FLUSH_SECONDS = 0.02


class ByValue:
    """Carries an object to a worker by cloudpickle: classes of the user's script travel whole."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        import cloudpickle

        return _by_value, (cloudpickle.dumps(self.value),)


def _by_value(data: bytes) -> ByValue:
    import cloudpickle

    # This reads what the parent process, which started this one, has just written.
    return ByValue(cloudpickle.loads(data))


def serve(factory: ByValue, messages: Connection, lifeline: Connection) -> None:
    """Main function of a worker process."""
    # Ctrl-C goes to every process of the terminal; only the engine's owner decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, args=(lifeline,), daemon=True).start()
    try:
        _serve(factory.value, messages)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the engine is gone, and with it whoever wanted a result
    except EscaladeError as problem:
        _report(messages, type(problem), str(problem), "")
    except Exception as problem:  # noqa: BLE001 - whatever it is, the parent raises it
        _report(messages, None, f"{type(problem).__name__}: {problem}", traceback.format_exc())


def _report(messages: Connection, kind: type[EscaladeError] | None, text: str, trace: str) -> None:
    with suppress(OSError):  # another worker failed first, and the engine is gone
        messages.send(("failed", kind, text, trace))


def _serve(factory: Factory, messages: Connection) -> None:
    work = factory()
    messages.send(("ready", work.info()))
    feed = _PipeFeed(messages)
    while True:
        job = feed.next_job()
        work.begin(job)
        work.run(feed)
        feed.flush()


def _die_with_parent(lifeline: Connection) -> None:
    """Block until the parent's end closes, which its death does whatever the cause."""
    try:
        lifeline.recv_bytes()
    except (EOFError, OSError):
        os._exit(0)


class _PipeFeed:
    def __init__(self, messages: Connection) -> None:
        self._messages = messages
        self._poll = select.poll()
        self._poll.register(messages, select.POLLIN)
        self._items: deque[int] = deque()
        self._results: list[tuple[int, Any]] = []
        self._flushed = time.monotonic()
        self._job: tuple[int, Any] | None = None
        self._number = -1

    def next_job(self) -> Any:
        """Wait for a job."""
        while self._job is None:
            self._receive()
        (self._number, job), self._job = self._job, None
        return job

    def take(self, most: int, wait: bool) -> list[int]:
        # Messages that are there are read first: a new job makes the items before it worthless.
        while self._poll.poll(0):
            self._receive()
        while wait and not self._items and self._job is None:
            self.flush()
            self._receive()
        if self._job is not None:
            return []
        return [self._items.popleft() for _ in range(min(most, len(self._items)))]

    def put(self, item: int, result: Any) -> None:
        self._results.append((item, result))
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Send the results so far: what is sent survives this process."""
        if self._results:
            self._messages.send(("results", self._number, self._results))
            self._results = []
        self._flushed = time.monotonic()

    def _receive(self) -> None:
        kind, number, content = self._messages.recv()
        if kind == "job":
            self._job = (number, content)
            self._items.clear()
        elif kind == "items":
            self._items.extend(content)
