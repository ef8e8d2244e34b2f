"""Signals that end a run: the first asks for an orderly end, the second ends at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, ClassVar

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, the end of a service or of a batch job, and a terminal that closes."""

INTERRUPTED = 130
"""Exit code of a command that was interrupted, after what it did was saved."""

LEADER = "ESCALADE_LEADER"
"""An environment variable: the number of a pipe, whose other end closes when the leader of a command ends."""

_SAME_SECONDS = 0.5  # ``timeout`` sends its signal to the process and to its group: that is one request


def end_with_leader() -> None:
    """Interrupt this process when the one that started it has ended, if :data:`LEADER` names their pipe."""
    pipe = os.environ.pop(LEADER, None)
    if pipe is None:
        return

    def wait() -> None:
        os.read(int(pipe), 1)  # nothing is written: it returns at the other end's close
        if not Interrupts.asked:  # a second signal would end at once what is being saved
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="escalade-leader", daemon=True).start()


_forking = threading.local()


def _hold_signals() -> None:
    """Block signals while this thread forks: a child must not get one before its handlers are its own."""
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _hand_back_signals() -> None:
    """Give a forked child the handlers from before :class:`Interrupts`: it has no run to end."""
    for number in SIGNALS:
        handler = signal.getsignal(number)
        while isinstance(owner := getattr(handler, "__self__", None), Interrupts):
            handler = owner._before.get(number, signal.SIG_DFL)
            signal.signal(number, handler)
    _release_signals()


os.register_at_fork(before=_hold_signals, after_in_parent=_release_signals, after_in_child=_hand_back_signals)


class Interrupts:
    """While entered, :data:`SIGNALS` set ``requested`` instead of raising anywhere.

    Inside :meth:`allowed` they raise KeyboardInterrupt at once: that is where nothing is half
    done. A second signal, half a second after the first or later, calls ``leave``, where the command
    line has set it to end the process, and raises wherever it arrives otherwise.

    One within another takes its place for the time, and shares its requests both ways: a run that has
    nothing left to interrupt is over, and the series that it is one of is not.
    """

    leave: ClassVar[Callable[[], None] | None] = None
    asked: ClassVar[bool] = False
    """True once a signal has asked this process for an end."""
    _holds: ClassVar[int] = 0
    _late: ClassVar[bool] = False

    def __init__(self) -> None:
        self.requested = False
        self._first = 0.0
        self._allowed = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before = signal.getsignal(number)
                if before is None:
                    continue  # of the program that Python runs in, which could not be put back
                if number == signal.SIGHUP and before == signal.SIG_IGN:
                    continue  # nohup: the run is to go on without its terminal
                self._before[number] = signal.signal(number, self._handle)
        for outer in map(self._outer, self._before):
            if outer is not None and outer.requested and not self.requested:
                self.requested, self._first = True, outer._first
        return self

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """A block in which a first signal may raise KeyboardInterrupt."""
        self._allowed = True
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        finally:
            self._allowed = False

    @classmethod
    @contextmanager
    def held(cls) -> Iterator[None]:
        """A block of the main thread that a first signal lets end before it raises.

        For what would be half undone otherwise, such as where the process's output goes.
        """
        if threading.current_thread() is not threading.main_thread():  # signals are not handled there
            yield
            return
        cls._holds += 1
        try:
            yield
        finally:
            cls._holds -= 1
            if cls._late and not cls._holds:
                cls._late = False
                raise KeyboardInterrupt

    def _outer(self, number: int) -> Interrupts | None:
        """The one that this one has taken the place of, if there is one."""
        # A signal may come before __enter__ has noted what it replaced.
        owner = getattr(self._before.get(number), "__self__", None)
        return owner if isinstance(owner, Interrupts) else None

    def _note(self, number: int, now: float) -> None:
        self.requested, self._first = True, now
        outer = self._outer(number)
        if outer is not None:
            outer._note(number, now)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self.requested:
            self._note(number, now)
            Interrupts.asked = True
        elif now - self._first < _SAME_SECONDS:
            return
        else:
            if Interrupts.leave is not None:
                Interrupts.leave()
            raise KeyboardInterrupt
        if self._allowed:
            self._allowed = False
            if Interrupts._holds:
                Interrupts._late = True
            else:
                raise KeyboardInterrupt
