"""Silence for libraries that write to the console while an environment is built."""

from __future__ import annotations

import fcntl
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from escalade.support.interrupts import Interrupts
from escalade.support.shared import SharedContext, without_warnings


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
