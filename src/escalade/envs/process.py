"""Console output, headless rendering, and closing of environments."""

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

_CLOSE_SECONDS = 10.0  # after which a call of ``close`` is abandoned
_hung: set[str] = set()  # classes whose ``close`` did not return; their other objects are not closed
# Python's record of past warnings is reset whenever its filters change, as by Gymnasium.
_warned: set[str] = set()


def close(env: gymnasium.Env[Any, Any]) -> None:
    """Close the environment.

    Exceptions become a warning, shown once per process. A call that does not return is abandoned, and
    ``close`` is not called again for objects of that class. An error does not matter here: the caller has its
    results already, or is raising an error itself.
    """
    name = type(getattr(env, "unwrapped", env)).__name__
    if name in _hung:
        return
    try:
        with _time_limit(_CLOSE_SECONDS):
            env.close()
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # noqa: BLE001 - code of the environment, including panics of Rust
        if isinstance(problem, _TimedOut):
            _hung.add(name)
        text = visible(shortened(one_line(problem)))
        text = f"{name}.close() raised {text} (results are not affected)"
        if text not in _warned:
            _warned.add(text)
            at = traceback.extract_tb(problem.__traceback__)[-1]
            warnings.warn_explicit(text, RuntimeWarning, at.filename, at.lineno or 0)


class _TimedOut(TimeoutError):
    """A call took too long."""


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise in the block after ``seconds``. Has no effect outside of the main thread or inside C code."""
    main = threading.current_thread() is threading.main_thread()
    if (
        not main or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
    ):  # or the program uses the alarm itself
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
    """Yield the environment and close it after the block."""
    try:
        yield env
    finally:
        close(env)


@contextmanager
def closed_on_error(env: gymnasium.Env[Any, Any]) -> Iterator[None]:
    """Close the environment if the block raises."""
    try:
        yield
    except BaseException:
        close(env)
        raise


def headless() -> None:
    """Set up rendering without a display."""
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        if _has_egl():
            os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")


def _has_egl() -> bool:
    """Return True if MuJoCo can render with EGL.

    Setting it without EGL makes ``import mujoco`` fail. The library is loaded for the whole process, because
    EnvPool's MuJoCo looks up its functions there and ends the process without them ("gladLoadGL error"). A
    program that imports both mujoco and envpool before escalade has to set ``MUJOCO_GL`` itself, because both
    are bound on import.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            ctypes.CDLL("libEGL.so.1", mode=ctypes.RTLD_GLOBAL)
            return True
    return False


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # None in a program without a console
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
    """Duplicate a file descriptor above those of the console. Return None if it is closed."""
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
"""Suppresses MuJoCo's warnings about its model files, on the console and in ``MUJOCO_LOG.TXT``.

A handler that does nothing is installed in the block; later simulation may warn again.
"""

_silent_output = SharedContext(_quiet)


@contextmanager
def quiet() -> Iterator[None]:
    """Discard standard output and error of the process, including that of C libraries.

    MuJoCo warns about its own model files whenever one is loaded, and a population of environments would
    flood the console. Exceptions are not affected.
    """
    with Interrupts.held(), _silent_output(), without_warnings():
        yield
