"""Processes that run only Escalade: garbage collection, and a fast exit."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from typing import NoReturn

_own = False
_worker = False
_pythons: tuple[int, int, int] | None = None  # Python's own thresholds of the garbage collector
_MOST_GARBAGE = 500_000  # objects; importing torch makes half as many, and none of them is garbage


def claim() -> None:
    """Mark this process as Escalade's own, which is the command line or the server of its workers.

    Until :func:`collect_garbage`, garbage is collected after half a million new objects instead of 700.
    Otherwise 350 collections would take a fifth of importing torch, which makes no garbage; see
    benchmarks/start.md.
    """
    global _own, _pythons
    _own, _pythons = True, gc.get_threshold()
    gc.set_threshold(_MOST_GARBAGE)


def collect_garbage() -> None:
    """Restore Python's frequency of garbage collection after the imports, and exclude what they made.

    Environments may make large objects that refer to themselves. Garbage from the imports is never freed, as
    looking for it would take a tenth of a second at every start. In a process that is not Escalade's own,
    the frequency was never changed and this does nothing.
    """
    global _pythons  # noqa: PLW0603 - a property of the whole process
    if _pythons is not None:
        gc.freeze()
        gc.set_threshold(*_pythons)
        _pythons = None


def become_worker() -> None:
    """Mark this process as a worker of an engine."""
    global _worker  # noqa: PLW0603 - a property of the whole process
    _worker = True


def is_worker() -> bool:
    """Return whether this process is a worker, in which a module that trains on import must not train."""
    return _worker


def is_own() -> bool:
    """Return whether only Escalade runs in this process, rather than a program that imports it."""
    return _own


def end_process(code: int) -> NoReturn:
    """Exit like the interpreter, but without tearing down hundreds of modules.

    Exit functions run and output is flushed. If a thread is not a daemon, the interpreter must wait for it,
    so the process exits the normal way.
    """
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if all(thread.daemon for thread in others):
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)
    sys.exit(code)
