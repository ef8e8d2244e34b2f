"""Main program of a worker process: builds the work, then runs jobs until the engine closes the pipe.

Imports little, and not torch, because it is loaded before the first worker is forked.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from types import FrameType
from typing import TYPE_CHECKING, Any

from escalade.engines.base import SHORTEST_TIMEOUT, Factory, close_work
from escalade.engines.messages import dumped, received_job
from escalade.engines.results import Results
from escalade.errors import EscaladeError, InputError, with_place
from escalade.support.own_process import become_worker, collect_garbage

if TYPE_CHECKING:
    from numpy.typing import NDArray

OWNERS_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that a terminal, service manager or batch system sends to every process of a group."""

CLOSE_SECONDS = 2.0
"""Seconds that the work may take to close after the engine has closed the pipe."""

_FLUSH_SECONDS = 0.02
_ALIVE_SECONDS = SHORTEST_TIMEOUT / 5  # between heartbeats while no results are ready
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class ByValue:
    """Sends an object to a worker with cloudpickle, classes of the user's script by value."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __reduce__(self) -> Any:
        # Pickled anew for each worker: shared memory is handed over while its process starts.
        return Pickled, (dumped(self._value),)


class Pickled:
    """A :class:`ByValue` as received by a worker."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def load(self) -> Any:
        """Unpickle and return the object. Call this once."""
        import cloudpickle

        # Trusted: the parent process, which started this one, has just written it. Freed, since it may be
        # as large as a model.
        data, self._data = self._data, b""
        return cloudpickle.loads(data)


def one_blas_thread() -> None:
    """Restrict BLAS to one thread, since a worker is one of N.

    BLAS reads the variables when it is loaded. Settings of the user's shell are overridden, because the
    rounding of a product may depend on the number of threads.
    """
    # The user's program may have started the server, which then loaded numpy without these variables.
    late = "numpy" in sys.modules and any(os.environ.get(name) != "1" for name in _ONE_THREAD)
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    if late:
        from threadpoolctl import threadpool_limits

        threadpool_limits(1, user_api="blas")  # never undone: the process has no other purpose


def serve(factory: Pickled, messages: Connection, lifeline: Connection) -> None:
    """Run the worker process."""
    _leave_signals_to_the_owner()
    _let_work_fork(messages, lifeline)
    # The owner ends this process as a daemon. multiprocessing reads this entry to forbid daemons to start
    # processes, but simulators and data loaders do.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    one_blas_thread()
    become_worker()
    try:
        _watch(lifeline)
        loaded = factory.load()
        collect_garbage()
        _serve(loaded, messages)
    except _EngineGone:
        pass  # its results are not needed anymore
    except EscaladeError as problem:
        _report(messages, type(problem), str(problem), "")
    except BaseException as problem:  # noqa: BLE001 - the parent raises it, SystemExit included
        _report(messages, None, with_place(problem), traceback.format_exc())


def _watch(lifeline: Connection) -> None:
    """Start the thread that ends this process when its engine ends.

    Raises:
        InputError: the thread cannot be started.
    """
    try:
        threading.Thread(target=_end_with_engine, args=(lifeline,), daemon=True).start()
    except RuntimeError as problem:
        raise InputError(
            f"a worker process cannot start a thread ({problem}): lower `workers`, or raise the limit of "
            "processes and threads (ulimit -u, or the pids limit of the cgroup)"
        ) from problem


def _serve(factory: Factory, messages: Connection) -> None:
    work = factory()
    try:
        feed = _PipeFeed(messages)
        feed.send(("ready", work.info()))
        while True:
            work.begin(feed.next_job())
            work.run(feed)
    finally:
        close_work(work)


def _leave_signals_to_the_owner() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Handlers instead of a mask: processes that an environment starts would inherit a mask, and SIGTERM could
    # not end them.
    others = [number for number in OWNERS_SIGNALS if number != signal.SIGINT]
    for number in others:
        signal.signal(number, _do_nothing)
        signal.siginterrupt(number, False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, others)


def _let_work_fork(*pipes: Connection) -> None:
    """Make processes that the work forks killable, and close their copies of the pipes."""
    # multiprocessing ends them with SIGTERM, perhaps while they still have the inherited handlers.
    os.register_at_fork(
        before=partial(signal.pthread_sigmask, signal.SIG_BLOCK, [signal.SIGTERM]),
        after_in_parent=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, [signal.SIGTERM]),
        after_in_child=partial(_begin_fork, pipes),
    )


def _begin_fork(pipes: Sequence[Connection]) -> None:
    for pipe in pipes:  # an open copy would hide the death of this worker from the engine
        if not pipe.closed:
            pipe.close()
    if signal.getsignal(signal.SIGTERM) is _do_nothing:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Ignore a signal."""


def _report(messages: Connection, kind: type[EscaladeError] | None, text: str, trace: str) -> None:
    with suppress(OSError):  # another worker failed first, and the engine is gone
        messages.send(("failed", kind, text, trace))


def _end_with_engine(lifeline: Connection) -> None:
    """Wait until the engine closes its end or dies, then exit after ``CLOSE_SECONDS``."""
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    time.sleep(CLOSE_SECONDS)
    os._exit(0)


class _EngineGone(Exception):
    """The engine has closed its end of the pipe."""


class _PipeFeed:
    def __init__(self, messages: Connection) -> None:
        self._messages = messages
        self._poll = select.poll()
        self._poll.register(messages, select.POLLIN)
        self._items: deque[int] = deque()
        self._jobs: deque[Any] = deque()  # not started yet
        self._results = Results(0)
        self._sent = self._busy_since = time.monotonic()

    def next_job(self) -> Any:
        """Send the results of the previous job, then wait for the next."""
        while not self._jobs:
            self.flush()
            self._wait()
        return self._jobs.popleft()

    def take(self, most: int, wait: bool) -> list[int]:
        while self._poll.poll(0):
            self._receive()
        while wait and not self._items and not self._jobs:
            self.flush()
            self._wait()
        if self._jobs:  # the items belong to the next job
            return []
        return [self._items.popleft() for _ in range(min(most, len(self._items)))]

    def put(self, item: int, result: Any) -> None:
        self._results.put(item, result)
        self._flush_if_due()

    def put_many(self, items: Sequence[int] | NDArray[Any], rows: NDArray[Any]) -> None:
        self._results.put_many(items, rows)
        self._flush_if_due()

    def put_raised(self, item: int, message: str) -> None:
        self._results.raised[item] = message

    def alive(self) -> None:
        if time.monotonic() - self._sent > _ALIVE_SECONDS:
            self.send(("alive",))

    def _flush_if_due(self) -> None:
        if time.monotonic() - self._sent > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Send the results so far. Sent results are not lost if this process dies."""
        if self._results.missing:
            now = time.monotonic()
            self.send(("results", self._results, now - self._busy_since))
            self._results, self._busy_since = Results(0), now
        self._sent = time.monotonic()

    def send(self, message: tuple[Any, ...]) -> None:
        try:
            self._messages.send(message)
        except OSError:
            raise _EngineGone from None
        self._sent = time.monotonic()

    def _wait(self) -> None:
        started = time.monotonic()
        self._receive()
        self._busy_since += time.monotonic() - started

    def _receive(self) -> None:
        try:
            kind, content = self._messages.recv()
        except (EOFError, OSError):
            raise _EngineGone from None
        if kind == "memory":  # an OSError here means too little memory, not a closed pipe
            kind, content = received_job(self._messages, content)
        if kind == "job":
            self._jobs.append(content)
        else:
            self._items.extend(content)
