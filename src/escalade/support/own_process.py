"""A process that runs nothing but Escalade, and its end."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from typing import NoReturn

_own = False
_worker = False
_pythons: tuple[int, int, int] | None = None  # thresholds of the garbage collector, while others hold
_MOST_GARBAGE = 500_000  # objects; importing torch makes half as many, and all of them stay


def claim() -> None:
    """Say that this process is Escalade's own: the command line, or the server of its workers.

    Until :func:`collect_garbage`, garbage is looked for when half a million objects are new instead of 700.
    To look for it 350 times was a fifth of importing torch, which makes none: benchmarks/start.md.
    """
    global _own, _pythons
    _own, _pythons = True, gc.get_threshold()
    gc.set_threshold(_MOST_GARBAGE)


def collect_garbage() -> None:
    """Look for garbage as often as Python does, now that imports are over, but not in what they left.

    Environments may make large objects that refer to themselves. What is garbage by now stays: to look for it
    takes a tenth of a second of every start. In a process that is not Escalade's own nothing happens: it
    never looked for garbage less often.
    """
    global _pythons  # noqa: PLW0603 - it is said of the whole process
    if _pythons is not None:
        gc.freeze()
        gc.set_threshold(*_pythons)
        _pythons = None


def become_worker() -> None:
    """Say that this process is a worker of an engine's."""
    global _worker  # noqa: PLW0603 - it is said of the whole process
    _worker = True


def is_worker() -> bool:
    """Return whether it is one. A module that trains where it is imported would do so in all of them."""
    return _worker


def is_own() -> bool:
    """Return whether nobody else uses what the process imports: a library's user may."""
    return _own


def end_process(code: int) -> NoReturn:
    """End the process as the interpreter would, but for taking hundreds of modules apart first.

    Exit functions run and what was printed is written. A thread that is not a daemon is waited for
    by the interpreter, so it then ends the process the long way.
    """
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if all(thread.daemon for thread in others):
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)
    sys.exit(code)
