"""Interfaces of engines and of the work they run, and the engine that runs in the calling process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from escalade.engines.feed import ListFeed
from escalade.errors import one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from escalade.engines.results import Results

SHORTEST_TIMEOUT = 1.0
"""Minimum `step_timeout` of a run, in seconds. A healthy worker sends several heartbeats in that time."""


class Feed(Protocol):
    """A worker's view of the engine: a source of items and a sink for results."""

    def take(self, most: int, wait: bool) -> list[int]:
        """Return up to ``most`` items to run now.

        With ``wait``, block until there are some; the list is then empty only at the end of the job.
        """
        ...

    def put(self, item: int, result: Any) -> None:
        """Store the result of an item that was taken."""
        ...

    def put_many(self, items: Sequence[int] | NDArray[Any], rows: NDArray[Any]) -> None:
        """Store the results of several items: row k belongs to ``items[k]``. The arrays are not copied."""
        ...

    def put_raised(self, item: int, message: str) -> None:
        """Record an exception of an item that is tolerated. Call this before storing the item's result."""
        ...

    def alive(self) -> None:
        """Send a heartbeat.

        Call this between steps, as often as you like.

        Raises:
            JobDropped: the job was cancelled; :meth:`Work.run` does not catch it.
        """
        ...


class Work(Protocol):
    """The work of a worker: built once per worker, then run for each job until it has no more items.

    Running an item twice, or in a different worker, must return the same result.
    """

    def info(self) -> dict[str, Any]:
        """Return facts about this worker.

        ``slots`` is the number of items it can run at once. ``refills`` (default: True) is whether a
        finished slot can start a new item while the others continue.
        """
        ...

    def begin(self, job: Any) -> None:
        """Drop the rest of the previous job and start ``job``."""
        ...

    def run(self, feed: Feed) -> None:
        """Take items and store results until the feed has no more items."""
        ...

    def close(self) -> None:
        """Free the resources of this work."""
        ...


Factory = Callable[[], Work]


class Engine(Protocol):
    """Runs jobs.

    Each item's result is returned exactly once, or an exception is raised. A job may have a method
    ``describe(item)`` that returns a description of an item for messages.
    """

    on_note: Callable[[str], None]
    """Called with a line for the user, such as the worker that the run is waiting for. Set by the owner."""
    on_wait: Callable[[], None]
    """Called repeatedly while a job runs, once a worker is ready.

    An exception it raises ends the job. Set by the owner. The engine can still be used afterwards, but the
    results of the job are lost. Engines without processes call it between steps or items; the thread engine
    calls it from every thread.
    """

    @property
    def info(self) -> dict[str, Any]:
        """Return :meth:`Work.info` of one of the workers."""
        ...

    def run(self, job: Any, items: int) -> Results:
        """Run items 0 to ``items - 1`` and return all results. :meth:`Results.in_order` sorts them.

        Raises:
            EscaladeError: the work raised it, or the work cannot be done.
        """
        ...

    def close(self) -> None:
        """Close the work of every worker and end the worker.

        The engine cannot be used afterwards. Ray actors are killed without closing their work.
        """
        ...


@dataclass(frozen=True)
class EngineOptions:
    """Options of an engine."""

    workers: int
    """Number of workers, at least 1."""
    step_timeout: float | None = None
    """Seconds without a heartbeat after which a worker that has items is replaced. None means never."""
    elastic: bool = False
    """True if a cluster engine uses all available resources instead of ``workers``."""
    worker_resources: Mapping[str, float] = field(default_factory=dict)
    """Resources that a cluster worker reserves on its node, such as ``{"CPU": 2}``. Defaults to one CPU."""
    steps: Callable[[Any], int] | None = None
    """Returns the number of environment steps of some results, for reports per node."""


def ignore_note(text: str) -> None:
    """Do nothing. Default of ``on_note``."""


def keep_waiting() -> None:
    """Do nothing. Default of ``on_wait``."""


def describe(job: Any, item: int) -> str:
    """Return a description of an item: that of ``job.describe`` if the job has this method."""
    return str(job.describe(item)) if hasattr(job, "describe") else f"item {item}"


def close_work(work: Work) -> None:
    """Close finished work. Errors of its environments on close are printed, not raised."""
    try:
        work.close()
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # noqa: BLE001 - it must not hide the error that ended the run
        print(f"escalade: error while closing the environments: {one_line(problem)}", file=sys.stderr)  # noqa: T201


class InProcessEngine:
    """Runs everything in the calling process, for debugging and as the reference in tests."""

    def __init__(self, factory: Factory) -> None:
        self.on_note: Callable[[str], None] = ignore_note
        self.on_wait: Callable[[], None] = keep_waiting
        self._work = factory()

    @property
    def info(self) -> dict[str, Any]:
        return self._work.info()

    def run(self, job: Any, items: int) -> Results:
        feed = ListFeed(items, self.on_wait)
        self._work.begin(job)
        self._work.run(feed)
        return feed.results

    def close(self) -> None:
        close_work(self._work)
