"""Closing an environment, whose own code may fail there too."""

from __future__ import annotations

import signal
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from escalade.errors import one_line, shortened
from escalade.support.output import visible

if TYPE_CHECKING:
    import gymnasium

CLOSE_SECONDS = 10.0
"""Seconds after which a call of ``close`` is given up."""
_AGAIN_SECONDS = 0.1  # for objects of a class whose ``close`` has not returned before
_hung: set[str] = set()
# Python remembers too what it has warned of, until somebody changes its filters: Gymnasium does.
_said: set[str] = set()


def close(env: gymnasium.Env[Any, Any]) -> None:
    """Close the environment. What it raises is a warning, once a process: its episodes are done, and count.

    A call that does not return is given up, so that it cannot stop a run.

    The caller has the results by then, or raises an error of its own.
    """
    name = type(getattr(env, "unwrapped", env)).__name__
    try:
        with time_limit(_AGAIN_SECONDS if name in _hung else CLOSE_SECONDS):
            env.close()
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # noqa: BLE001 - the environment's own code, panics of Rust among it
        hung = isinstance(problem, TimedOut)
        if hung:
            _hung.add(name)
        text = visible(shortened(one_line(problem)))
        text = f"{name}.close() raised {text} (its episodes count all the same)"
        if text not in _said:
            _said.add(text)
            at = traceback.extract_tb(problem.__traceback__)[-2 if hung else -1]
            warnings.warn_explicit(text, RuntimeWarning, at.filename, at.lineno or 0)


@contextmanager
def closed_on_error(env: gymnasium.Env[Any, Any]) -> Iterator[None]:
    """Close the environment where the block raises."""
    try:
        yield
    except BaseException:
        close(env)
        raise


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
