"""The engine ``ray`` on the driver: distributes items, collects results, and resends lost items.

Two decisions rest on benchmarks/scale.py. Replies arrive in one queue, because waiting for a list of Ray
references takes time proportional to its length. A worker's share is sent as one call if it fits.
benchmarks/ray_faults.py checks that results stay bit-identical after any number of kills.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from queue import Empty
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from escalade.engines.base import EngineOptions, Factory
from escalade.engines.dispatch import Dispatcher, NodeReport, max_items_per_worker
from escalade.engines.results import Results
from escalade.errors import EngineFailure, EscaladeError, InputError
from escalade.wings.cluster.ray.cluster import RayCluster
from escalade.wings.cluster.ray.fleet import Fleet
from escalade.wings.cluster.ray.messages import Event, Failed, Handle, Lost, Ready, Reply, UnfitNode

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LISTEN_SECONDS = 0.2
_PIECES = 4  # chunks per worker, so that it never waits for the next one
_MOST_LOSSES = 20  # workers lost while they held the same items


def start(factory: Factory, options: EngineOptions) -> RayEngine:
    """Start the engine ``ray``.

    Raises:
        InputError: Ray is missing, the address cannot be reached, versions differ, or Ray does not know the
            requested resources.
    """
    cluster = RayCluster(factory, options)
    try:
        return RayEngine(cluster, options)
    except BaseException as problem:  # a later attempt must not find this cluster
        cluster.close()
        if isinstance(problem, ValueError) and not isinstance(problem, InputError):
            raise InputError(f"`worker_resources` {dict(options.worker_resources)}: {problem}") from None
        raise


class _Chunk(NamedTuple):
    items: NDArray[np.int64]
    losses: int
    """Number of workers that were lost while they held these items."""


@dataclass
class _Worker:
    """A worker that was requested."""

    node: str = ""
    info: dict[str, Any] = field(default_factory=dict)
    """Empty until the worker is ready, and while the cluster restarts it."""
    chunks: dict[int, _Chunk] = field(default_factory=dict)
    served: bool = False
    """True if it was ever ready."""

    @property
    def items(self) -> int:
        """Number of items that it holds."""
        return sum(len(chunk.items) for chunk in self.chunks.values())


class RayEngine(Dispatcher):
    """Runs items on the workers of a cluster, whose nodes may leave and join.

    Args:
        cluster: starts workers, and restarts lost ones.
        options: ``workers`` is the number of workers, unless ``elastic`` requests as many as there is room
            for.
    """

    reports = "nodes"

    def __init__(self, cluster: RayCluster, options: EngineOptions) -> None:
        super().__init__(options.steps)
        self._cluster = cluster
        self._workers: dict[Handle, _Worker] = {}
        self._fleet = Fleet(cluster, None if options.elastic else options.workers)
        self._number = self._chunk = self._share = 0
        self._job: Any = None
        self._waiting: deque[_Chunk] = deque()
        self._look()

    def run(self, job: Any, items: int) -> Results:
        self._number += 1
        self._job = self._cluster.put(job)
        expected = max(1, len(self._infos()), self._fleet.expected)
        self._share = -(-items // expected)
        self._results = Results(items)
        # Interleave items so that every chunk mixes long and short episodes.
        order = np.concatenate([np.arange(first, items, expected) for first in range(expected)])
        self._waiting = deque([_Chunk(order, 0)] if items else [])
        began = time.monotonic()
        for worker in self._workers.values():
            worker.chunks.clear()
        self._distribute()
        results = self._gather()
        self._report.seconds += time.monotonic() - began
        for key, count in Counter(worker.node for worker in self._workers.values() if worker.info).items():
            part = self._part(key)
            part.workers = max(part.workers, count)
        return results

    def close(self) -> None:
        self._workers.clear()
        self._cluster.close()

    def _part(self, node: str) -> NodeReport:
        """Return the entry of a node in the report."""
        return self._report.nodes.setdefault(node, NodeReport(self._fleet.name(node)))

    def _infos(self) -> list[dict[str, Any]]:
        return [worker.info for worker in self._workers.values() if worker.info]

    def _distribute(self) -> None:
        """Top up all workers."""
        for handle, worker in self._workers.items():
            self._top_up(handle, worker)

    def _top_up(self, handle: Handle, worker: _Worker) -> None:
        """Send items to a worker until it has as many as keep it busy."""
        if not worker.info or not self._waiting:
            return
        whole = max_items_per_worker(self._share, worker.info)
        while self._waiting:
            items, losses = self._waiting[0]
            # If a share kills workers, a smaller one may succeed. A single loss may be due to the node.
            most = max(1, whole >> max(0, losses - 1))
            # Send a whole share at once. Otherwise send pieces, so that other workers also get some early.
            at_once = most >= self._share or not worker.info.get("refills", True)
            piece = most if at_once else max(1, most // _PIECES)
            if worker.items + min(piece, len(items)) > most:
                return
            self._waiting.popleft()
            if len(items) > piece:
                self._waiting.appendleft(_Chunk(items[piece:], losses))
            self._chunk += 1
            worker.chunks[self._chunk] = _Chunk(items[:piece], losses)
            self._part(worker.node).repeated_chunks += losses > 0
            self._cluster.send(handle, self._chunk, self._number, self._job, items[:piece].tolist())

    def _listen(self) -> None:
        try:
            # With a timeout: nodes are polled meanwhile, and a signal just before would not interrupt it.
            self._handle(self._cluster.events.get(timeout=_LISTEN_SECONDS))
            while not self._cluster.events.empty():
                self._handle(self._cluster.events.get())
        except Empty:
            pass
        self._look()

    def _look(self) -> None:
        """Start missing workers, and explain a long wait to the user."""
        self._fleet.look(self.on_note)
        for _ in range(self._fleet.requested - len(self._workers)):
            self._workers[self._cluster.start_worker(sorted(self._fleet.avoided))] = _Worker()
        self._fleet.explain(bool(self._results.missing) and not self._infos(), self.on_note)

    def _handle(self, event: Event) -> None:
        worker = self._workers.get(event.worker)
        if worker is None:
            return  # it was removed
        match event:
            case Reply():
                self._collect(worker, event)
                self._top_up(event.worker, worker)
            case Ready():
                worker.node, worker.info, worker.served = event.node, event.info, True
                self._top_up(event.worker, worker)
            case Lost():
                self._lose(worker, event)
            case Failed():
                self._fail(worker, event)

    def _collect(self, worker: _Worker, reply: Reply) -> None:
        worker.node = reply.node
        part = self._part(worker.node)
        for note in reply.notes:
            self.on_note(f"{part.name}: {note}")
        known = worker.chunks.pop(reply.chunk, None) is not None  # else it belongs to an earlier job
        results = reply.results if known and reply.results is not None else Results(0)
        self._take_in(part, results, reply.busy_seconds)

    def _lose(self, worker: _Worker, event: Lost) -> None:
        """Send the items of a lost worker to others while the cluster restarts it."""
        if event.chunk and event.chunk not in worker.chunks and not event.for_good:
            return  # handled already, or the chunk belongs to an earlier job
        lost = self._take_back(worker, 1)
        if lost:
            self._part(worker.node).lost_chunks += len(lost)
        if (event.for_good and not worker.served) or any(chunk.losses >= _MOST_LOSSES for chunk in lost):
            raise EngineFailure(
                f"workers died {_MOST_LOSSES} times in a row without finishing anything "
                f"(the last: {event.reason}); run with `workers=0` to see the cause"
            )
        worker.info = {}
        if event.for_good:
            del self._workers[event.worker]
            self._cluster.end_worker(event.worker)  # frees its resources on the cluster
        else:
            self._cluster.await_ready(event.worker)
        self._distribute()

    def _take_back(self, worker: _Worker, losses: int) -> list[_Chunk]:
        """Queue the chunks of a worker again, and return them."""
        back = [_Chunk(chunk.items, chunk.losses + losses) for chunk in worker.chunks.values()]
        worker.chunks.clear()
        self._waiting.extendleft(back)
        return back

    def _fail(self, worker: _Worker, event: Failed) -> None:
        """Raise the work's exception. After the first job, a node that cannot run it is only excluded."""
        problem = event.problem
        if not isinstance(problem, EscaladeError):
            raise EngineFailure(f"a worker failed: {type(problem).__name__}: {problem}")
        if not isinstance(problem, UnfitNode):
            raise problem
        text = f"node {self._fleet.name(problem.node)} {problem}"
        self._fleet.avoided.add(problem.node)
        if self._number <= 1 or not self._fleet.usable:
            raise InputError(text)
        self.on_note(f"{text}; the node is not used")
        self._take_back(worker, 0)
        del self._workers[event.worker]
        self._cluster.end_worker(event.worker)
        self._distribute()
