"""The contracts of an engine and of its work, and the engine that runs it in the calling process."""

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
"""The least `step_timeout` of a run, in seconds; a worker that is well gives several signs of life in it."""


class Feed(Protocol):
    """A worker's view of the engine: items to run come in, results go out."""

    def take(self, most: int, wait: bool) -> list[int]:
        """Up to ``most`` items to run now; with ``wait``, empty only when there will be no more."""
        ...

    def put(self, item: int, result: Any) -> None:
        """Hand in the result of an item that was taken."""
        ...

    def put_many(self, items: Sequence[int] | NDArray[Any], rows: NDArray[Any]) -> None:
        """Hand in the results of several items, row k that of ``items[k]``; the arrays may be kept."""
        ...

    def put_raised(self, item: int, words: str) -> None:
        """Say what an item raised that was forgiven; to be called before its result is put."""
        ...

    def alive(self) -> None:
        """Say that the work goes on; to be called between steps, however often.

        Raises:
            JobDropped: nobody wants the job's results any more; :meth:`Work.run` lets it pass.
        """
        ...


class Work(Protocol):
    """The work of a worker: built once per worker, given each job, run until a job has no more items.

    Running an item twice, or in another worker, must give the same result.
    """

    def info(self) -> dict[str, Any]:
        """Facts about this worker.

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
    """Runs jobs: every item's result exactly once, or an exception.

    A job may have a method ``describe(item)`` that says in words what an item is, for messages.
    """

    on_note: Callable[[str], None]
    """Called with a line for the user, such as which worker is being waited for; set by the owner."""
    on_wait: Callable[[], None]
    """Called again and again while a job runs, once a worker is ready; what it raises ends the job.

    Set by the owner. The engine can be used afterwards; what the job had come to is lost. Engines without
    processes call it between steps or items, threads among them from every thread.
    """

    @property
    def info(self) -> dict[str, Any]:
        """:meth:`Work.info` of one of the workers."""
        ...

    def run(self, job: Any, items: int) -> Results:
        """Run items 0 to ``items - 1``; the results of all of them, which :meth:`Results.in_order` sorts.

        Raises:
            EscaladeError: what the work raised, or that it cannot be done.
        """
        ...

    def close(self) -> None:
        """End every worker, its work closed first (on Ray it is not: actors are killed).

        The engine cannot be used afterwards.
        """
        ...


@dataclass(frozen=True)
class EngineOptions:
    """The options an engine is started with."""

    workers: int
    """The number of workers, at least 1."""
    step_timeout: float | None = None
    """Seconds without a sign of life after which a worker that has items is replaced; None: never."""
    elastic: bool = False
    """True where an engine on a cluster uses all the room there is, instead of ``workers``."""
    worker_resources: Mapping[str, float] = field(default_factory=dict)
    """Resources a worker of a cluster takes of its node, such as ``{"CPU": 2}``; one CPU when not given."""
    steps: Callable[[Any], int] | None = None
    """Environment steps of some results, for whoever counts them by node."""


def ignore_note(text: str) -> None:
    """Do nothing: ``on_note`` until the engine's owner sets it."""


def keep_waiting() -> None:
    """Do nothing: ``on_wait`` until the engine's owner sets it."""


def describe(job: Any, item: int) -> str:
    """An item in words: the job's own, where it has them."""
    return str(job.describe(item)) if hasattr(job, "describe") else f"item {item}"


def close_work(work: Work) -> None:
    """Close work that is done: what its environments raise then is printed, and costs no result."""
    try:
        work.close()
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # noqa: BLE001 - it must not hide what ended the run
        print(f"escalade: closing the environments: {one_line(problem)}", file=sys.stderr)  # noqa: T201


class InProcessEngine:
    """Runs everything in the calling process: for debuggers, and for tests to compare with."""

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
