"""A state of the whole process that several threads want changed at the same time."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


class SharedContext:
    """A context that the first thread enters, and the last thread leaves.

    For what is the process's own (where its output goes, its warnings): were each thread to save and
    restore it by itself, one would restore what another had changed.

    Args:
        make: makes the context manager; called when nobody is inside.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[object]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._inside = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._context = self._make()
                self._context.__enter__()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._context.__exit__(None, None, None)


@contextmanager
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


without_warnings = SharedContext(_without_warnings)
"""No warnings of Python's while inside."""
