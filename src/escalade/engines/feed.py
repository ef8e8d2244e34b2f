"""The items of a job and their results, for engines that run in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from escalade.engines.results import Results

if TYPE_CHECKING:
    from numpy.typing import NDArray


class JobDropped(Exception):
    """The owner has given up a job, whose items may have no end: the worker turns to the next."""


class ListFeed:
    """Items 0 to ``items - 1`` in order, for one thread or for several that take from it.

    ``on_wait`` is called between steps and before items are given out; what it raises ends the work.
    ``most`` are given out at once, so that the first of several threads does not take all.
    """

    def __init__(
        self, items: int, on_wait: Callable[[], None] = lambda: None, most: int | None = None
    ) -> None:
        self._on_wait = on_wait
        self._most = items if most is None else most
        self._items, self._next = items, 0
        self._stopped = False
        self._lock = threading.Lock()
        self.results = Results(items)

    def take(self, most: int, wait: bool) -> list[int]:
        self._on_wait()
        with self._lock:
            first, self._next = self._next, min(self._items, self._next + min(most, self._most))
            return list(range(first, self._next))

    def put(self, item: int, result: Any) -> None:
        with self._lock:
            self.results.put(item, result)

    def put_many(self, items: Sequence[int] | NDArray[Any], rows: NDArray[Any]) -> None:
        with self._lock:
            self.results.put_many(items, rows)

    def put_raised(self, item: int, words: str) -> None:
        with self._lock:
            self.results.raised[item] = words

    def alive(self) -> None:
        """Look whether the owner still waits.

        Raises:
            JobDropped: it has called :meth:`stop`.
        """
        self._on_wait()
        if self._stopped:
            raise JobDropped

    def stop(self) -> None:
        """Give out no more, and end what runs between two of its steps."""
        with self._lock:
            self._next, self._stopped = self._items, True
