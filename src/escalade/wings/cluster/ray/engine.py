"""The driver's side: hands out items, takes results in, and hands out again what is lost on the way.

Measured by benchmarks/scale.py, and therefore kept: replies come through one queue (waiting for a list of
Ray's references costs the driver its length each time), and a share goes out as one call where it fits. The
bits through any number of kills are benchmarks/ray_faults.py's to check.
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
_PIECES = 4  # chunks in a worker's hands, so that it never waits for the next
_MOST_LOSSES = 20  # of the same items, each time with the worker that had them


def start(factory: Factory, options: EngineOptions) -> RayEngine:
    """The engine ``ray``.

    Raises:
        InputError: Ray is missing, the address cannot be reached, the versions differ, or Ray does not know
            the resources that workers are to have.
    """
    cluster = RayCluster(factory, options)
    try:
        return RayEngine(cluster, options)
    except BaseException as problem:  # the next try must not find a cluster that was started for this one
        cluster.close()
        if isinstance(problem, ValueError) and not isinstance(problem, InputError):
            raise InputError(f"`worker_resources` {dict(options.worker_resources)}: {problem}") from None
        raise


class _Chunk(NamedTuple):
    items: NDArray[np.int64]
    losses: int
    """The number of workers that were lost with these items in hand."""


@dataclass
class _Worker:
    """A worker that was asked for."""

    node: str = ""
    info: dict[str, Any] = field(default_factory=dict)
    """Empty until it is ready, and while its cluster starts it again."""
    chunks: dict[int, _Chunk] = field(default_factory=dict)
    served: bool = False
    """True where it was ever ready."""

    @property
    def items(self) -> int:
        """The number of items it has in hand."""
        return sum(len(chunk.items) for chunk in self.chunks.values())


class RayEngine(Dispatcher):
    """Runs items on the workers of a cluster, whose nodes come and go.

    Args:
        cluster: where workers are started, and started again when they are lost.
        options: ``workers`` is how many to keep, unless ``elastic`` asks for all there is room for.
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
        # Every expected-th item together: long and short episodes mix, and neighbours do not bunch.
        order = np.concatenate([np.arange(first, items, expected) for first in range(expected)])
        self._waiting = deque([_Chunk(order, 0)] if items else [])
        began = time.monotonic()
        for worker in self._workers.values():
            worker.chunks.clear()
        self._hand_out()
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
        """The report's line of a node."""
        return self._report.nodes.setdefault(node, NodeReport(self._fleet.name(node)))

    def _infos(self) -> list[dict[str, Any]]:
        return [worker.info for worker in self._workers.values() if worker.info]

    def _hand_out(self) -> None:
        """Top all workers up to as much as they can be busy with."""
        for handle, worker in self._workers.items():
            self._top_up(handle, worker)

    def _top_up(self, handle: Handle, worker: _Worker) -> None:
        if not worker.info or not self._waiting:
            return
        whole = max_items_per_worker(self._share, worker.info)
        while self._waiting:
            items, losses = self._waiting[0]
            # Where workers die of a share, a smaller one still gets through. One loss may be the node's.
            most = max(1, whole >> max(0, losses - 1))
            # All at once where that is its whole share; else in pieces, for others to be sent meanwhile.
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
            # Not for ever: nodes are looked at meanwhile, and a signal just before would not end it.
            self._act(self._cluster.events.get(timeout=_LISTEN_SECONDS))
            while not self._cluster.events.empty():
                self._act(self._cluster.events.get())
        except Empty:
            pass
        self._look()

    def _look(self) -> None:
        """Ask for the workers that are missing, and say what there is to wait for."""
        self._fleet.look(self.on_note)
        for _ in range(self._fleet.asked - len(self._workers)):
            self._workers[self._cluster.start_worker(sorted(self._fleet.avoided))] = _Worker()
        self._fleet.explain(bool(self._results.missing) and not self._infos(), self.on_note)

    def _act(self, event: Event) -> None:
        worker = self._workers.get(event.worker)
        if worker is None:
            return  # it was given up
        match event:
            case Reply():
                self._answer(worker, event)
                self._top_up(event.worker, worker)
            case Ready():
                worker.node, worker.info, worker.served = event.node, event.info, True
                self._top_up(event.worker, worker)
            case Lost():
                self._lose(worker, event)
            case Failed():
                self._fail(worker, event)

    def _answer(self, worker: _Worker, reply: Reply) -> None:
        worker.node = reply.node
        part = self._part(worker.node)
        for note in reply.notes:
            self.on_note(f"{part.name}: {note}")
        known = worker.chunks.pop(reply.chunk, None) is not None  # else it is of a job before
        results = reply.results if known and reply.results is not None else Results(0)
        self._take_in(part, results, reply.busy_seconds)

    def _lose(self, worker: _Worker, event: Lost) -> None:
        """Let others do what a worker had in hand, while its cluster starts it again."""
        if event.chunk and event.chunk not in worker.chunks and not event.for_good:
            return  # it is known, or the chunk is of a job before
        lost = self._take_back(worker, 1)
        if lost:
            self._part(worker.node).lost_chunks += len(lost)
        if (event.for_good and not worker.served) or any(chunk.losses >= _MOST_LOSSES for chunk in lost):
            raise EngineFailure(
                f"workers died {_MOST_LOSSES} times in a row without finishing anything "
                f"(the last: {event.reason}): run with `workers=0` to see why"
            )
        worker.info = {}
        if event.for_good:
            del self._workers[event.worker]
            self._cluster.end_worker(event.worker)  # and what the cluster holds of it
        else:
            self._cluster.await_ready(event.worker)
        self._hand_out()

    def _take_back(self, worker: _Worker, losses: int) -> list[_Chunk]:
        """Let what a worker had in hand wait again; those chunks."""
        back = [_Chunk(chunk.items, chunk.losses + losses) for chunk in worker.chunks.values()]
        worker.chunks.clear()
        self._waiting.extendleft(back)
        return back

    def _fail(self, worker: _Worker, event: Failed) -> None:
        """Raise what the work raised; a node that cannot run it is used no more, once others have begun."""
        problem = event.problem
        if not isinstance(problem, EscaladeError):
            raise EngineFailure(f"a worker failed: {type(problem).__name__}: {problem}")
        if not isinstance(problem, UnfitNode):
            raise problem
        text = f"node {self._fleet.name(problem.node)} {problem}"
        self._fleet.avoided.add(problem.node)
        if self._number <= 1 or not self._fleet.usable:
            raise InputError(text)
        self.on_note(f"{text}; it is not used")
        self._take_back(worker, 0)
        del self._workers[event.worker]
        self._cluster.end_worker(event.worker)
        self._hand_out()
