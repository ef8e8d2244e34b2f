"""A worker of the cluster: an actor that runs chunks of items in one thread.

Each chunk is a call of the actor. Several calls can be active at once. Their items share the slots of one
work, and a call returns when its last item is done, so slots never idle between two chunks.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from importlib import metadata
from typing import TYPE_CHECKING, Any

from escalade.engines.base import EngineOptions, Factory, Feed, Work
from escalade.engines.feed import JobDropped
from escalade.engines.processes import ProcessEngine
from escalade.engines.results import Results
from escalade.errors import EngineFailure, EscaladeError, one_line
from escalade.support.machine import versions
from escalade.support.own_process import become_worker
from escalade.wings.cluster.ray.messages import UnfitNode

if TYPE_CHECKING:
    from numpy.typing import NDArray

Answer = Future["Results | None"]


class RayWorker:
    """The actor of a worker. If it is lost, Ray creates it again. Call :meth:`ready` before :meth:`run`."""

    def __init__(self) -> None:
        import ray

        self._ray = ray
        self._node = ray.get_runtime_context().get_node_id()
        self._started = threading.Lock()
        self._info: Future[dict[str, Any]] = Future()
        self._feed = ChunkFeed()
        self._notes: deque[str] = deque()

    def ready(self, made_of: list[Any]) -> tuple[str, dict[str, Any]]:
        """Build the work, and return the node and the facts about the work.

        Args:
            made_of: reference to the arguments of :meth:`_build`, in a list.
        """
        if self._started.acquire(blocking=False):
            threading.Thread(target=self._serve, args=(made_of,), daemon=True).start()
        return self._node, self._info.result()

    def run(
        self, number: int, job: list[Any], items: Sequence[int]
    ) -> tuple[str, Results | None, float, list[str]] | None:
        """Run items of job ``number``; ``job`` is a list with a reference to it, which is fetched once.

        Returns:
            The node, the results, the busy seconds and notes; or None if this actor was created again and
            :meth:`ready` was not called since.
        """
        feed = self._feed
        if not self._started.locked():
            return None
        if number > feed.number:
            feed.switch_to(number, self._ray.get(job[0]))
        results = feed.add(number, items).result()
        notes: list[str] = []
        with suppress(IndexError):  # empty; other calls may pop notes at the same time
            while True:
                notes.append(self._notes.popleft())
        return self._node, results, feed.take_busy_seconds(), notes

    def _serve(self, made_of: list[Any]) -> None:
        try:
            work = self._build(*self._ray.get(made_of[0]))
            self._info.set_result(work.info())
            self._feed.serve(work)
        except BaseException as problem:  # noqa: BLE001 - the engine raises it
            failure = _as_escalade_error(problem, self._node)
            if not self._info.done():
                self._info.set_exception(failure)
            self._feed.fail(failure)

    def _build(
        self, pickled: bytes, arrays: Any, processes: int, step_timeout: float | None, theirs: dict[str, str]
    ) -> Work:
        """Build the work from its pickled factory and the arrays of the factory.

        Items run in this process, or in worker processes with several ``processes`` or a ``step_timeout``.
        ``theirs`` are the versions of packages on the driver, which this node must have, too.
        """
        import cloudpickle

        from escalade.support.exact import one_thread

        if differs := difference(all_versions(), theirs):
            raise UnfitNode(f"has {differs}; install the same versions on every node", self._node)
        self._one_thread = one_thread()  # stored, because the limit ends with the object
        self._one_thread.__enter__()  # never exited: this process does nothing else
        has_crew = processes > 1 or step_timeout is not None  # a hanging thread cannot be killed
        if not has_crew:
            become_worker()
        # Unpickling is safe: the data comes from the engine that started this actor.
        make: Factory = cloudpickle.loads(pickled, buffers=arrays)
        return Crew(make, max(1, processes), step_timeout, self._notes.append) if has_crew else make()


class Crew:
    """Work that passes its items to ``processes`` local worker processes.

    The driver then communicates with one actor instead of many, which allows larger clusters. A process
    without a heartbeat for ``step_timeout`` seconds is replaced.
    """

    def __init__(
        self,
        factory: Factory,
        processes: int,
        step_timeout: float | None,
        on_note: Callable[[str], None],
    ) -> None:
        self._engine = ProcessEngine(factory, EngineOptions(processes, step_timeout))
        self._engine.on_note = on_note
        self._processes = processes

    def info(self) -> dict[str, Any]:
        """Return facts about one worker with all slots. Items run in batches, so slots are not refilled."""
        info = self._engine.info
        return info | {"slots": info["slots"] * self._processes, "refills": False}

    def begin(self, job: Any) -> None:
        self._job = job

    def run(self, feed: Feed) -> None:
        self._engine.on_wait = feed.alive
        while items := feed.take(self.info()["slots"], wait=True):
            results = self._engine.run_some(self._job, items)
            for item, words in results.raised.items():
                feed.put_raised(item, words)
            for done, rows in results.in_batches():
                feed.put_many(done, rows)

    def close(self) -> None:
        self._engine.close()


def all_versions() -> dict[str, str]:
    """Return the versions of Escalade and of all packages that can change a result."""
    return {"escalade": metadata.version("escalade")} | versions()


def difference(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """Return a description of different versions, or "". Packages on one side only are ignored."""
    names = [name for name in theirs if name in ours and theirs[name] != ours[name]]
    return ", ".join(f"{name} {theirs[name]} (here {ours[name]})" for name in names)


def _as_escalade_error(problem: BaseException, node: str) -> EscaladeError:
    """Convert any exception to one of Escalade, which Ray can pickle and users can read."""
    text = str(problem) if isinstance(problem, EscaladeError) else one_line(problem)
    missing = next((cause for cause in _causes(problem) if isinstance(cause, ImportError)), None)
    if missing is not None:
        name = missing.name or missing
        return UnfitNode(f"cannot import {name} ({text}); install its package on every node", node)
    if isinstance(problem, EscaladeError):
        return problem
    failure = EngineFailure(f"a worker failed: {text}")
    failure.add_note("".join(traceback.format_exception(problem)))
    return failure


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    while problem is not None:
        yield problem
        problem = problem.__cause__ or problem.__context__


class _OpenChunk:
    def __init__(self, items: int) -> None:
        self.results = Results(items)
        self.answer: Answer = Future()


class ChunkFeed:
    """Queue of the items of all chunks, which returns each result to the chunk of its item."""

    def __init__(self) -> None:
        self.number = 0
        self._job: Any = None
        self._new_job = False
        self._busy_seconds = self._resumed = 0.0
        self._news = threading.Condition()
        self._waiting: deque[int] = deque()
        self._chunks: dict[int, _OpenChunk] = {}  # by item
        self._problem: EscaladeError | None = None

    def switch_to(self, number: int, job: Any) -> None:
        """Start a new job and drop the previous one. Calls that wait for dropped chunks return None."""
        with self._news:
            if number <= self.number:
                return
            self.number, self._job, self._new_job = number, job, True
            self._drop(set(self._chunks.values()))
            self._news.notify()

    def add(self, number: int, items: Sequence[int]) -> Answer:
        """Queue a chunk, and return a future of its results. An item that is sent twice is moved here."""
        chunk = _OpenChunk(len(items))
        with self._news:
            if self._problem is not None:
                chunk.answer.set_exception(self._problem)
            elif number != self.number:
                chunk.answer.set_result(None)
            else:
                self._drop({self._chunks[item] for item in items if item in self._chunks})
                self._chunks.update(dict.fromkeys(items, chunk))
                self._waiting.extend(items)
                self._news.notify()
        return chunk.answer

    def _drop(self, chunks: set[_OpenChunk]) -> None:
        """Remove chunks. Calls that wait for them return None."""
        for chunk in chunks:
            chunk.answer.set_result(None)
        self._chunks = {item: chunk for item, chunk in self._chunks.items() if chunk not in chunks}
        self._waiting = deque(item for item in self._waiting if item in self._chunks)

    def serve(self, work: Work) -> None:
        """Run jobs on ``work`` forever."""
        while True:
            with self._news:
                self._news.wait_for(lambda: self._new_job)
                self._new_job, job = False, self._job
            work.begin(job)
            self._resumed = time.monotonic()
            with suppress(JobDropped):
                work.run(self)
            with self._news:
                self._count_busy()

    def fail(self, problem: EscaladeError) -> None:
        """Record that the work is broken. Current and later calls raise ``problem``."""
        with self._news:
            self._problem = problem
            for chunk in set(self._chunks.values()):
                chunk.answer.set_exception(problem)
            self._chunks.clear()

    def take_busy_seconds(self) -> float:
        """Return the busy seconds since the last call."""
        with self._news:
            taken, self._busy_seconds = self._busy_seconds, 0.0
        return taken

    def take(self, most: int, wait: bool) -> list[int]:
        with self._news:
            if wait and not self._waiting and not self._new_job:
                self._count_busy()
                self._news.wait_for(lambda: self._waiting or self._new_job)
                self._resumed = time.monotonic()
            if self._new_job:  # the rest of the previous job is dropped
                return []
            return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def put(self, item: int, result: Any) -> None:
        self.put_many([item], [result])

    def put_many(self, items: Sequence[int] | NDArray[Any], rows: NDArray[Any] | list[Any]) -> None:
        with self._news:
            if self._new_job:
                return
            owners = [self._chunks.pop(int(item), None) for item in items]
            for chunk in dict.fromkeys(owners):
                if chunk is None:
                    continue
                places = [place for place, owner in enumerate(owners) if owner is chunk]
                part = [rows[place] for place in places] if isinstance(rows, list) else rows[places]
                chunk.results.put_many([int(items[place]) for place in places], part)
                if not chunk.results.missing:
                    self._count_busy()
                    chunk.answer.set_result(chunk.results)

    def put_raised(self, item: int, words: str) -> None:
        with self._news:
            if not self._new_job and item in self._chunks:
                self._chunks[item].results.raised[item] = words

    def alive(self) -> None:
        """Raise JobDropped if there is a new job. Ray needs no heartbeat."""
        if self._new_job:
            raise JobDropped

    def _count_busy(self) -> None:
        now = time.monotonic()
        self._busy_seconds += now - self._resumed
        self._resumed = now
