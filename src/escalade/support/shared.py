"""Changes to the state of the whole process that several threads share."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


class SharedContext:
    """A context that the first thread enters and the last thread exits.

    It is for state of the process, such as its warnings or the destination of its output. If each thread
    saved and restored such state by itself, one would undo the changes of the others.

    Args:
        make: makes the context manager; called when no thread is inside.
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
"""Context that ignores Python's warnings."""
