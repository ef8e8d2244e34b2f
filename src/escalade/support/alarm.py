"""A limit on the time of a call into other people's code, in the main thread."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TimedOut(TimeoutError):
    """The block has taken too long."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt the block once it has taken ``seconds``.

    Python code and calls that wait are interrupted; a loop inside a C library is not. Without effect outside
    of the main thread, and if the program uses the alarm signal itself.

    Raises:
        TimedOut: the block was interrupted.
    """
    main = threading.current_thread() is threading.main_thread()
    used = not main or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
    if used or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise TimedOut(f"it did not return within {seconds:g} s")

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
