"""The process around an environment: its console and display, and a ``close`` that may raise or hang."""

from __future__ import annotations

import ctypes
import fcntl
import importlib
import importlib.util
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from escalade.errors import one_line, shortened
from escalade.support.interrupts import Interrupts
from escalade.support.output import visible
from escalade.support.shared import SharedContext, without_warnings

if TYPE_CHECKING:
    import gymnasium

_CLOSE_SECONDS = 10.0  # after which a call of ``close`` is given up
_hung: set[str] = set()  # classes whose ``close`` has not returned: their other objects are not closed
# Python remembers too what it has warned of, until somebody changes its filters: Gymnasium does.
_said: set[str] = set()


def close(env: gymnasium.Env[Any, Any]) -> None:
    """Close the environment. What it raises is a warning, once a process: its episodes are done, and count.

    A call that does not return is given up, and not tried again for objects of that class.

    The caller has the results by then, or raises an error of its own.
    """
    name = type(getattr(env, "unwrapped", env)).__name__
    if name in _hung:
        return
    try:
        with _time_limit(_CLOSE_SECONDS):
            env.close()
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # noqa: BLE001 - the environment's own code, panics of Rust among it
        if isinstance(problem, _TimedOut):
            _hung.add(name)
        text = visible(shortened(one_line(problem)))
        text = f"{name}.close() raised {text} (its episodes count all the same)"
        if text not in _said:
            _said.add(text)
            at = traceback.extract_tb(problem.__traceback__)[-1]
            warnings.warn_explicit(text, RuntimeWarning, at.filename, at.lineno or 0)


class _TimedOut(TimeoutError):
    """A call has taken too long."""


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise in the block once it has taken ``seconds``: only in the main thread, and not within C code."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:  # or the program has an alarm
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise _TimedOut(f"it did not return within {seconds:g} s")

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


@contextmanager
def closed_at_end(env: gymnasium.Env[Any, Any]) -> Iterator[gymnasium.Env[Any, Any]]:
    """Give the block the environment, and close it afterwards."""
    try:
        yield env
    finally:
        close(env)


@contextmanager
def closed_on_error(env: gymnasium.Env[Any, Any]) -> Iterator[None]:
    """Close the environment where the block raises."""
    try:
        yield
    except BaseException:
        close(env)
        raise


def headless() -> None:
    """Let environments draw where there is no display."""
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        if _has_egl():
            os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")


def _has_egl() -> bool:
    """Return whether MuJoCo can draw through EGL. If it is told to and cannot, ``import mujoco`` fails.

    The library is loaded for the whole process: EnvPool's MuJoCo looks its functions up there, and ends the
    process if it finds none ("gladLoadGL error"). A program that imports both mujoco and envpool before
    escalade has to set ``MUJOCO_GL`` itself: what is loaded by then is bound.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            ctypes.CDLL("libEGL.so.1", mode=ctypes.RTLD_GLOBAL)
            return True
    return False


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # as it is in a program without a console
            stream.flush()


@contextmanager
def _quiet() -> Iterator[None]:
    _flush()
    saved = {fd: _copy(fd) for fd in (1, 2)}
    with open(os.devnull, "wb") as opened:
        nowhere = _copy(opened.fileno())
    assert nowhere is not None
    try:
        for fd in saved:
            os.dup2(nowhere, fd)
        yield
    finally:
        _flush()
        for fd, copy in saved.items():
            if copy is None:
                os.close(fd)
            else:
                os.dup2(copy, fd)
                os.close(copy)
        os.close(nowhere)


def _copy(fd: int) -> int | None:
    """A copy of a file descriptor, above those of the console; None where it is closed."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    except OSError:
        return None


@contextmanager
def _mujoco_quiet() -> Iterator[None]:
    mujoco: Any = importlib.import_module("mujoco") if importlib.util.find_spec("mujoco") else None
    if not hasattr(mujoco, "set_mju_user_warning"):
        yield
        return
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


mujoco_quiet = SharedContext(_mujoco_quiet)
"""Keeps MuJoCo's warnings of its model files from the console and from ``MUJOCO_LOG.TXT``.

With a handler of ours in place it writes neither; what is simulated later may warn again.
"""

_silent_output = SharedContext(_quiet)


@contextmanager
def quiet() -> Iterator[None]:
    """Send the process's standard output and error to nowhere, C libraries' writes included.

    MuJoCo warns of its own model files on every construction, from C: a population's worth of
    environments would flood the console. Exceptions pass through untouched.
    """
    with Interrupts.held(), _silent_output(), without_warnings():
        yield
