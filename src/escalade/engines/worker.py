"""A worker process: builds the work, then serves jobs until its engine goes away.

Imports little, and no torch: it is loaded before the first worker is forked.
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
"""The signals that a terminal, service manager or batch system sends to every process of a group."""

CLOSE_SECONDS = 2.0
"""The seconds that work may take to close, once the engine has gone."""

_FLUSH_SECONDS = 0.02
_ALIVE_SECONDS = SHORTEST_TIMEOUT / 5  # between signs of life while there are no results to send
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class ByValue:
    """Carries an object to a worker by cloudpickle: classes of the user's script travel whole."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __reduce__(self) -> Any:
        # Anew for each worker: what holds shared memory is handed over while its process is started.
        return Pickled, (dumped(self._value),)


class Pickled:
    """The form in which a worker receives a :class:`ByValue`."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def load(self) -> Any:
        """The object."""
        import cloudpickle

        # This reads what the parent process, which started this one, has just written. Read once, as it may
        # be as large as a model.
        data, self._data = self._data, b""
        return cloudpickle.loads(data)


def one_blas_thread() -> None:
    """Let BLAS, which reads these variables when it is loaded, use one thread: a worker is one of N.

    Whatever the user's shell says: the bits of a product may depend on the number of threads.
    """
    # The user's program may have started the server, which then loaded numpy without these variables.
    late = "numpy" in sys.modules and any(os.environ.get(name) != "1" for name in _ONE_THREAD)
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    if late:
        from threadpoolctl import threadpool_limits

        threadpool_limits(1, user_api="blas")  # for good: the process has no other purpose


def serve(factory: Pickled, messages: Connection, lifeline: Connection) -> None:
    """Main function of a worker process."""
    _leave_signals_to_the_owner()
    _let_work_fork(messages, lifeline)
    # The owner ends this process as a daemon. multiprocessing forbids daemons to start processes of their
    # own, which simulators and loaders of data do: here it looks at this entry.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    one_blas_thread()
    become_worker()
    try:
        _watch(lifeline)
        loaded = factory.load()
        collect_garbage()
        _serve(loaded, messages)
    except _EngineGone:
        pass  # and with it whoever wanted a result
    except EscaladeError as problem:
        _report(messages, type(problem), str(problem), "")
    except BaseException as problem:  # noqa: BLE001 - whatever it is, sys.exit included, the parent raises it
        _report(messages, None, with_place(problem), traceback.format_exc())


def _watch(lifeline: Connection) -> None:
    """Start the thread that ends this process with its engine.

    Raises:
        InputError: there may be no further thread.
    """
    try:
        threading.Thread(target=_end_with_engine, args=(lifeline,), daemon=True).start()
    except RuntimeError as problem:
        raise InputError(
            f"a worker process cannot start a thread ({problem}): lower `workers`, or raise the limit of "
            "processes and threads (ulimit -u, or pids of a cgroup)"
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
    # Handlers and no mask: what an environment starts would inherit a mask, and could not be ended.
    others = [number for number in OWNERS_SIGNALS if number != signal.SIGINT]
    for number in others:
        signal.signal(number, _do_nothing)
        signal.siginterrupt(number, False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, others)


def _let_work_fork(*pipes: Connection) -> None:
    """Let processes that the work forks be ended, and not be taken for this one."""
    # multiprocessing ends them with SIGTERM, perhaps before they have any handlers but those they inherit.
    os.register_at_fork(
        before=partial(signal.pthread_sigmask, signal.SIG_BLOCK, [signal.SIGTERM]),
        after_in_parent=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, [signal.SIGTERM]),
        after_in_child=partial(_begin_fork, pipes),
    )


def _begin_fork(pipes: Sequence[Connection]) -> None:
    for pipe in pipes:  # by whose end the engine knows that this worker has died
        if not pipe.closed:
            pipe.close()
    if signal.getsignal(signal.SIGTERM) is _do_nothing:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Handle a signal."""


def _report(messages: Connection, kind: type[EscaladeError] | None, text: str, trace: str) -> None:
    with suppress(OSError):  # another worker failed first, and the engine is gone
        messages.send(("failed", kind, text, trace))


def _end_with_engine(lifeline: Connection) -> None:
    """Wait until the engine's end closes, as it does when its process dies; then give the work its time."""
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    time.sleep(CLOSE_SECONDS)
    os._exit(0)


class _EngineGone(Exception):
    """The other end of the pipe is closed."""


class _PipeFeed:
    def __init__(self, messages: Connection) -> None:
        self._messages = messages
        self._poll = select.poll()
        self._poll.register(messages, select.POLLIN)
        self._items: deque[int] = deque()
        self._jobs: deque[Any] = deque()  # that were not begun
        self._results = Results(0)
        self._sent = self._busy_since = time.monotonic()

    def next_job(self) -> Any:
        """Wait for a job, once the one before has been handed in."""
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
        if self._jobs:  # what is there are its items
            return []
        return [self._items.popleft() for _ in range(min(most, len(self._items)))]

    def put(self, item: int, result: Any) -> None:
        self._results.put(item, result)
        self._flush_if_due()

    def put_many(self, items: Sequence[int] | NDArray[Any], rows: NDArray[Any]) -> None:
        self._results.put_many(items, rows)
        self._flush_if_due()

    def put_raised(self, item: int, words: str) -> None:
        self._results.raised[item] = words

    def alive(self) -> None:
        if time.monotonic() - self._sent > _ALIVE_SECONDS:
            self.send(("alive",))

    def _flush_if_due(self) -> None:
        if time.monotonic() - self._sent > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Send the results so far: what is sent survives this process."""
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
        began = time.monotonic()
        self._receive()
        self._busy_since += time.monotonic() - began

    def _receive(self) -> None:
        try:
            kind, content = self._messages.recv()
        except (EOFError, OSError):
            raise _EngineGone from None
        if kind == "memory":  # an OSError here is too little memory: a failure, and no reason to leave
            kind, content = received_job(self._messages, content)
        if kind == "job":
            self._jobs.append(content)
        else:
            self._items.extend(content)
