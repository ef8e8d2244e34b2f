"""Who runs the work. An engine knows nothing of what the work is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Feed(Protocol):
    """A worker's view of the engine: items to run come in, results go out."""

    def take(self, most: int, wait: bool) -> list[int]:
        """Up to ``most`` items to run now; with ``wait``, empty only when there will be no more."""
        ...

    def put(self, item: int, result: Any) -> None:
        """Hand in the result of an item that was taken."""
        ...


class Work(Protocol):
    """What a worker does. Built once per worker; told of each job; then run until there is no more.

    Running an item twice, or in another worker, must give the same result.
    """

    def info(self) -> dict[str, Any]:
        """What there is to know of this worker.

        ``slots`` is how many items it can run at once; ``refills`` (True where it is left out) says
        whether a slot that is done can start on another item while the rest go on.
        """
        ...

    def begin(self, job: Any) -> None:
        """Drop what is left of the job before and turn to ``job``."""
        ...

    def run(self, feed: Feed) -> None:
        """Take items and put results until the feed has no more."""
        ...

    def close(self) -> None:
        """Free what the work holds."""
        ...


Factory = Callable[[], Work]


class Engine(Protocol):
    """Runs jobs: every item's result exactly once, in item order, or an exception."""

    @property
    def info(self) -> dict[str, Any]:
        """What the workers say of themselves."""
        ...

    def run(self, job: Any, items: int) -> list[Any]:
        """Results of items 0 to ``items - 1``.

        Raises:
            EscaladeError: what the work raised, or that it cannot be done.
        """
        ...

    def close(self) -> None:
        """End every worker. The engine cannot be used afterwards."""
        ...


@dataclass(frozen=True)
class EngineOptions:
    """What an engine is started with."""

    workers: int
    """How many workers, at least 1."""
    step_timeout: float | None = None
    """Seconds without a sign of life after which a worker that has items is replaced; None: never."""
    elastic: bool = False
    """Whether an engine on a cluster should use all the room there is instead of ``workers``."""
    address: str | None = None
    """Of a cluster: ``auto``, ``HOST:PORT``, or None for this machine."""
    worker_resources: Mapping[str, float] = field(default_factory=dict)
    """What a worker of a cluster needs of its machine, such as ``{"CPU": 2}``; one CPU when not given."""
    steps: Callable[[Any], int] | None = None
    """Environment steps of a result, for whoever counts them by machine."""


class InProcessEngine:
    """Runs everything in the calling process: for debuggers, and for tests to compare with."""

    def __init__(self, factory: Factory) -> None:
        self._work = factory()

    @property
    def info(self) -> dict[str, Any]:
        return self._work.info()

    def run(self, job: Any, items: int) -> list[Any]:
        feed = _ListFeed(items)
        self._work.begin(job)
        self._work.run(feed)
        return [feed.results[item] for item in range(items)]

    def close(self) -> None:
        self._work.close()


class _ListFeed:
    def __init__(self, items: int) -> None:
        self._items, self._next = items, 0
        self.results: dict[int, Any] = {}

    def take(self, most: int, wait: bool) -> list[int]:
        first, self._next = self._next, min(self._items, self._next + most)
        return list(range(first, self._next))

    def put(self, item: int, result: Any) -> None:
        self.results[item] = result
