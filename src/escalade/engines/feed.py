"""Items of a job and their results, for engines that run in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from escalade.engines.results import Results

if TYPE_CHECKING:
    from numpy.typing import NDArray


class JobDropped(Exception):
    """The owner cancelled the job, whose items may never end. The worker continues with the next job."""


class ListFeed:
    """Items 0 to ``items - 1`` in order, for one or more threads.

    ``on_wait`` is called between steps and before items are handed out; an exception it raises ends the work.
    At most ``most`` items are handed out at once, so that the first of several threads does not take all.
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

    def put_raised(self, item: int, message: str) -> None:
        with self._lock:
            self.results.raised[item] = message

    def alive(self) -> None:
        """Check that the owner is still waiting.

        Raises:
            JobDropped: :meth:`stop` was called.
        """
        self._on_wait()
        if self._stopped:
            raise JobDropped

    def stop(self) -> None:
        """Hand out no more items, and end running items before their next step."""
        with self._lock:
            self._next, self._stopped = self._items, True
