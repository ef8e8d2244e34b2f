"""Signals that end a run: the first requests an orderly end, the second ends the process at once."""

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
"""Ctrl-C, the end of a service or batch job, and a closed terminal."""

INTERRUPTED = 130
"""Exit code of a command that was interrupted after it saved its work."""

LEADER = "ESCALADE_LEADER"
"""Environment variable with the number of a pipe whose other end closes when the command's leader ends."""

_SAME_SECONDS = 0.5  # ``timeout`` signals both the process and its group, which is one request


def end_with_leader() -> None:
    """Interrupt this process when the process that started it ends, if :data:`LEADER` names their pipe."""
    pipe = os.environ.pop(LEADER, None)
    if pipe is None:
        return

    def wait() -> None:
        os.read(int(pipe), 1)  # returns when the other end closes, as nothing is written
        if not Interrupts.requested_once:  # a second signal would end the process while it saves
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="escalade-leader", daemon=True).start()


_forking = threading.local()


def _hold_signals() -> None:
    """Block signals during a fork, until the child has its own handlers."""
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _hand_back_signals() -> None:
    """Restore in a forked child the handlers from before :class:`Interrupts`, as it has no run to end."""
    for number in SIGNALS:
        handler = signal.getsignal(number)
        while isinstance(owner := getattr(handler, "__self__", None), Interrupts):
            handler = owner._before.get(number, signal.SIG_DFL)
            signal.signal(number, handler)
    _release_signals()


os.register_at_fork(before=_hold_signals, after_in_parent=_release_signals, after_in_child=_hand_back_signals)


class Interrupts:
    """A context in which :data:`SIGNALS` set ``requested`` instead of raising.

    Inside :meth:`allowed`, where no work is half done, they raise KeyboardInterrupt at once. A second signal,
    at least half a second after the first, calls ``leave``, which the command line sets to end the process.
    If ``leave`` is not set, the second signal raises KeyboardInterrupt wherever it arrives.

    A nested instance replaces the outer one while it is entered, and they share requests in both directions:
    after an interrupt, a run that has already ended must still stop the series that it belongs to.
    """

    leave: ClassVar[Callable[[], None] | None] = None
    requested_once: ClassVar[bool] = False
    """True once a signal has requested the end of this process."""
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
                    continue  # set by the program that embeds Python, and could not be restored
                if number == signal.SIGHUP and before == signal.SIG_IGN:
                    continue  # with nohup, the run continues without its terminal
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
        """Let a first signal raise KeyboardInterrupt inside this block."""
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
        """Delay the KeyboardInterrupt of a first signal to the end of this block of the main thread.

        For changes that must be undone completely, such as a redirection of the process's output.
        """
        if threading.current_thread() is not threading.main_thread():  # which handles no signals
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
        """Return the instance that this one has replaced, or None."""
        # A signal may arrive before __enter__ has recorded the handler that it replaced.
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
            Interrupts.requested_once = True
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
