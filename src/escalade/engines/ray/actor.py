"""A worker of the cluster: an actor that serves chunks of items from one thread.

Chunks are calls. Several may be in hand at once; their items run in the slots of one work, and a call
returns when its last item is done. So slots never stand empty between two chunks.
"""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from escalade.engines.base import Factory, JobDropped, Work
from escalade.engines.ray.versions import versions
from escalade.engines.results import Results
from escalade.errors import EscaladeError

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Worker:
    """The actor. It is never restarted by Ray: its engine replaces it."""

    def __init__(self, factory: bytes, processes: int, step_timeout: float | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._built: asyncio.Future[Any] = self._loop.create_future()
        self._feed = _ChunkFeed(self._loop)
        thread = threading.Thread(target=self._serve, args=(factory, processes, step_timeout), daemon=True)
        thread.start()

    async def ready(self) -> tuple[Any, ...]:
        """Wait until the work is built: node, what the work says of itself, and versions; or why not."""
        import ray

        answer: tuple[Any, ...] = await asyncio.shield(self._built)
        return (ray.get_runtime_context().get_node_id(), *answer)

    async def watch(self) -> None:
        """Return never: a caller learns of the actor's end by this call's failure."""
        await asyncio.Event().wait()

    async def run(self, number: int, job: list[Any], items: Sequence[int]) -> tuple[Any, ...]:
        """Run items of job ``number``; ``job`` holds a reference to it, which is fetched once."""
        feed = self._feed
        if number > feed.number:
            feed.turn_to(number, await job[0])
        try:
            results = await feed.add(number, items)
        except Problem as problem:
            return problem.args
        return "done", results, feed.busy_seconds

    def _serve(self, factory: bytes, processes: int, step_timeout: float | None) -> None:
        try:
            work, info = _build(factory, processes, step_timeout)
        except BaseException as problem:  # noqa: BLE001 - the engine raises it
            self._answer(problem_of(problem))
            return
        self._answer(("ready", info, versions()))
        try:
            self._feed.serve(work)
        except BaseException as problem:  # noqa: BLE001 - the engine raises it
            self._feed.fail(problem_of(problem))

    def _answer(self, answer: tuple[Any, ...]) -> None:
        self._loop.call_soon_threadsafe(self._built.set_result, answer)


def problem_of(problem: BaseException) -> tuple[Any, ...]:
    """An exception as plain values: its class where that is Escalade's, text, trace, missing module."""
    kind = type(problem) if isinstance(problem, EscaladeError) else None
    text = str(problem) if kind else f"{type(problem).__name__}: {problem}"
    cause: BaseException | None = problem
    while cause is not None and not isinstance(cause, ImportError):
        cause = cause.__cause__ or cause.__context__
    missing = (cause.name or str(cause)) if isinstance(cause, ImportError) else ""
    return "failed", kind, text, "".join(traceback.format_exception(problem)), missing


def _build(factory: bytes, processes: int, step_timeout: float | None) -> tuple[Work, dict[str, Any]]:
    import cloudpickle

    from escalade.support.exact import one_thread

    one_thread().__enter__()  # for good: the process has no other purpose
    # This reads what the engine, which started this actor, has just written.
    make: Factory = cloudpickle.loads(factory)
    if processes > 1 or step_timeout is not None:  # a thread that hangs cannot be ended, a process can
        from escalade.engines.ray.crew import Crew

        work: Work = Crew(make, processes, step_timeout)
    else:
        work = make()
    return work, work.info()


class _Chunk:
    def __init__(self, items: Sequence[int], done: asyncio.Future[Any]) -> None:
        self.items = items
        self.results = Results(len(items))
        self.done = done


class _ChunkFeed:
    """Items of all chunks in one line; results back to the chunk that asked."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.number = 0
        self.busy_seconds = 0.0
        self._loop = loop
        self._job: Any = None
        self._fresh = False
        self._news = threading.Condition()
        self._waiting: deque[int] = deque()
        self._chunks: dict[int, _Chunk] = {}  # by item
        self._problem: tuple[Any, ...] | None = None

    def turn_to(self, number: int, job: Any) -> None:
        """Drop the job before: whoever still waits for its chunks gets None."""
        with self._news:
            if number <= self.number:
                return
            self.number, self._job, self._fresh = number, job, True
            for chunk in set(self._chunks.values()):
                _settle(chunk.done, None)
            self._chunks.clear()
            self._waiting.clear()
            self._news.notify()

    def add(self, number: int, items: Sequence[int]) -> asyncio.Future[Any]:
        """Line up a chunk; its results come in batches."""
        chunk = _Chunk(items, self._loop.create_future())
        with self._news:
            if self._problem is not None:
                chunk.done.set_exception(Problem(*self._problem))
            elif number != self.number:
                chunk.done.set_result(None)
            else:
                self._chunks.update(dict.fromkeys(items, chunk))
                self._waiting.extend(items)
                self._news.notify()
        return chunk.done

    def serve(self, work: Work) -> None:
        """Run jobs on ``work`` for ever."""
        while True:
            with self._news:
                while not self._fresh:
                    self._news.wait()
                self._fresh, job = False, self._job
            work.begin(job)
            self._resumed = time.monotonic()
            with suppress(JobDropped):
                work.run(self)
            self.busy_seconds += time.monotonic() - self._resumed

    def fail(self, problem: tuple[Any, ...]) -> None:
        """The work is broken: say so to all that wait, and to whoever asks later."""
        with self._news:
            self._problem = problem
            for chunk in set(self._chunks.values()):
                self._loop.call_soon_threadsafe(_break, chunk.done, problem)

    def take(self, most: int, wait: bool) -> list[int]:
        with self._news:
            if wait and not self._waiting and not self._fresh:
                self.busy_seconds += time.monotonic() - self._resumed
                while not self._waiting and not self._fresh:
                    self._news.wait()
                self._resumed = time.monotonic()
            if self._fresh:  # what is left of the job before is worthless
                return []
            return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def put(self, item: int, result: Any) -> None:
        with self._news:
            chunk = None if self._fresh else self._chunks.pop(item, None)
            if chunk is not None:
                chunk.results.put(item, result)
                self._finish(chunk)

    def put_many(self, items: Sequence[int] | NDArray[Any], rows: NDArray[Any]) -> None:
        with self._news:
            if self._fresh:
                return
            places: dict[_Chunk, list[int]] = {}
            for place, item in enumerate(map(int, items)):
                chunk = self._chunks.pop(item, None)
                if chunk is not None:
                    places.setdefault(chunk, []).append(place)
            for chunk, mine in places.items():
                whole = len(mine) == len(items)
                chunk.results.put_many(
                    items if whole else [int(items[place]) for place in mine], rows if whole else rows[mine]
                )
                self._finish(chunk)

    def alive(self) -> None:
        """Nobody listens, for who is late has its items run elsewhere too; but look for another job."""
        if self._fresh:
            raise JobDropped

    def _finish(self, chunk: _Chunk) -> None:
        if not chunk.results.missing:
            self._loop.call_soon_threadsafe(_settle, chunk.done, chunk.results.in_batches())


class Problem(Exception):
    """Carries what :func:`problem_of` said through the event loop."""


def _settle(future: asyncio.Future[Any], results: Any) -> None:
    if not future.done():
        future.set_result(results)


def _break(future: asyncio.Future[Any], problem: tuple[Any, ...]) -> None:
    if not future.done():
        future.set_exception(Problem(*problem))
