"""The driver's side: hands out items, takes results in, and replaces what is lost on the way."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty
from typing import TYPE_CHECKING, Any, Literal

from escalade.engines.base import EngineOptions, keep_waiting
from escalade.engines.ray.fleet import Fleet
from escalade.engines.ray.messages import Cluster, Event, Failed, Handle, Lost, Ready, Reply
from escalade.engines.ray.versions import difference
from escalade.engines.ray.work import Chunk, Items
from escalade.engines.report import NodeReport, Report
from escalade.engines.shares import most_in_hand
from escalade.errors import EngineFailure, InputError
from escalade.support.output import visible

if TYPE_CHECKING:
    from escalade.engines.results import Results

_LISTEN_SECONDS = 0.2
_PIECES = 4  # chunks in a worker's hands, so that it never waits for the next
_LATE_SECONDS = 2.0  # the least before a chunk is given to a second worker
_LATE_TIMES = 3.0  # so many times as long as the job's chunks took on average
_MOST_DEATHS = 20  # of workers on nodes that live on, in a row, with not one result between them


def _to_stderr(text: str) -> None:
    sys.stderr.write(f"escalade: {visible(text)}\n")


@dataclass
class _Worker:
    """A worker that is ready."""

    node: str
    info: dict[str, Any]
    chunks: set[int] = field(default_factory=set)
    in_hand: int = 0
    busy_before: float = 0.0


class RayEngine:
    """Runs items on the workers of a cluster, whose nodes come and go.

    Args:
        cluster: where workers are started.
        options: ``workers`` is how many to keep, unless ``elastic`` asks for all there is room for.
    """

    reports: Literal["nodes", "workers"] = "nodes"

    def __init__(self, cluster: Cluster, options: EngineOptions) -> None:
        self.on_note: Callable[[str], None] = _to_stderr
        self.on_wait: Callable[[], None] = keep_waiting
        self.report = Report()
        """Who did what since :meth:`take_report`."""
        self._cluster = cluster
        self._steps = options.steps
        self._workers: dict[Handle, _Worker] = {}
        self._fleet = Fleet(cluster, None if options.elastic else options.workers)
        self._number = self._chunk = 0
        self._job: Any = None
        self._items = Items(0, 1)
        self._deaths = self._caution = 0  # as in the local engine
        self._fleet.look(self._say)

    @property
    def info(self) -> dict[str, Any]:
        while not self._workers:
            self._hear()
        return next(iter(self._workers.values())).info

    @property
    def dashboard(self) -> str | None:
        """Address of the page that shows the cluster, if it has one."""
        return self._cluster.dashboard

    def run(self, job: Any, items: int) -> Results:
        self._number += 1
        self._job = self._cluster.put(job)
        expected = max(1, len(self._workers), self._fleet.expected)
        self._items = Items(items, expected)
        self._share = -(-items // expected)
        self._chunk_seconds = [0, 0.0]
        began = time.monotonic()
        if self._number == 1 and self.dashboard:
            self._say(f"Ray's dashboard: http://{self.dashboard}")
        for handle, worker in self._workers.items():
            worker.chunks.clear()
            worker.in_hand = 0
            self._hand_out(handle)
        while self._items.left:
            self._hear()
            if self._workers:
                self.on_wait()
        self.report.seconds += time.monotonic() - began
        for key, count in Counter(worker.node for worker in self._workers.values()).items():
            part = self._part(key)
            part.workers = max(part.workers, count)
        return self._items.results

    def take_report(self) -> Report:
        """Who did what since the last call."""
        taken, self.report = self.report, Report()
        return taken

    def close(self) -> None:
        self._workers.clear()
        self._cluster.close()

    def _say(self, text: str) -> None:
        self.on_note(text)

    def _part(self, node: str) -> NodeReport:
        """The report's line of a node."""
        if node not in self.report.nodes:
            self.report.nodes[node] = NodeReport(self._fleet.name(node))
        return self.report.nodes[node]

    def _hand_out(self, handle: Handle) -> None:
        """Top a worker up to as much as it can be busy with."""
        worker, items = self._workers[handle], self._items
        most = max(1, most_in_hand(self._share, worker.info) >> self._caution) if self._share else 0
        # All at once where that is the worker's whole share; else in pieces, for others to be sent meanwhile.
        refills = worker.info.get("refills", True)
        piece = most if most >= self._share or not refills else max(1, most // _PIECES)
        while items.waiting and worker.in_hand + piece <= most:
            self._send(handle, *items.take(piece))

    def _send(self, handle: Handle, items: Any, repeat: bool) -> None:
        worker = self._workers[handle]
        self._chunk += 1
        self._items.chunks[self._chunk] = Chunk(handle, items, time.monotonic(), repeat)
        worker.chunks.add(self._chunk)
        worker.in_hand += len(items)
        if repeat:
            self._part(worker.node).repeated_chunks += 1
        self._cluster.send(handle, self._chunk, self._number, self._job, items)

    def _hear(self) -> None:
        """Wait for news, and act on all there is."""
        try:
            # Not for ever: nodes are looked at meanwhile, and a signal just before would not end it.
            self._act(self._cluster.events.get(timeout=_LISTEN_SECONDS))
            while not self._cluster.events.empty():
                self._act(self._cluster.events.get())
        except Empty:
            self._double_late()
        for gone in self._fleet.look(self._say):
            self._lose(gone, "its node left")
        self._fleet.explain(len(self._workers), self._items.left, self._say)

    def _act(self, event: Event) -> None:
        match event:
            case Reply():
                self._take_in(event)
            case Ready():
                self._welcome(event)
            case Lost():
                self._lose(event.worker, event.reason)
            case Failed():
                self._raise(event)

    def _welcome(self, event: Ready) -> None:
        if not self._fleet.knows(event.worker):
            return
        differs = difference(event.versions, self._cluster.versions)
        if differs:
            self._refuse(event.worker, event.node, f"has {differs}: install the same versions on every node")
            return
        self._workers[event.worker] = _Worker(event.node, event.info)
        self._fleet.settled(event.worker, event.node)
        if self._items.left:
            self._hand_out(event.worker)

    def _take_in(self, event: Reply) -> None:
        worker, chunk = self._workers.get(event.worker), self._items.chunks.get(event.chunk)
        if worker is None or event.chunk not in worker.chunks:
            return  # of a job before, or of a worker that was given up
        worker.chunks.discard(event.chunk)
        if chunk is None or event.results is None:
            return
        worker.in_hand -= len(chunk.items)
        self._deaths, self._caution = 0, max(0, self._caution - 1)
        part = self._part(worker.node)
        part.busy_seconds += event.busy_seconds - worker.busy_before
        worker.busy_before = event.busy_seconds
        self._chunk_seconds[0] += 1
        self._chunk_seconds[1] += time.monotonic() - chunk.began
        for items, rows in self._items.finish(event.chunk, event.results):
            part.items += len(items)
            if self._steps is not None and len(items):
                part.env_steps += self._steps(rows)
        self._hand_out(event.worker)

    def _lose(self, handle: Handle, reason: str) -> None:
        """Give a worker up; what it had in hand goes to others, and another takes its place."""
        worker = self._workers.pop(handle, None)
        node_lives = self._fleet.lost(handle)
        if worker is not None:
            again = [number for number in worker.chunks if self._items.give_back(number)]
            if self._items.left:
                self._part(worker.node).lost_chunks += len(again)
        if node_lives is None:
            return  # given up before
        self._cluster.end_worker(handle)
        if node_lives:
            self._deaths += 1
            self._caution += 1
        if self._deaths >= _MOST_DEATHS:
            raise EngineFailure(
                f"workers died {self._deaths} times in a row without finishing anything "
                f"(the last: {reason}): run with `workers=0` to see why"
            )
        for other in self._workers:
            self._hand_out(other)

    def _double_late(self) -> None:
        """When all is handed out and somebody is idle: give it what is with another for too long."""
        count, seconds = self._chunk_seconds if self._number else (0, 0.0)
        if self._items.waiting or not self._items.left or not count:
            return
        idle = [handle for handle, worker in self._workers.items() if not worker.chunks]
        for handle in idle:
            chunk = self._items.late(max(_LATE_SECONDS, _LATE_TIMES * seconds / count))
            if chunk is None:
                return
            chunk.doubled = True
            self._send(handle, chunk.items, True)

    def _raise(self, event: Failed) -> None:
        if not self._fleet.knows(event.worker):
            return
        if event.missing:
            worker = self._workers.get(event.worker)
            node = event.node or (worker.node if worker else "")
            text = f"cannot import {event.missing} ({event.text}): install its package on every node"
            self._refuse(event.worker, node, text)
            return
        if event.kind is not None:
            raise event.kind(event.text)
        problem = EngineFailure(f"a worker failed: {event.text}")
        problem.add_note(event.trace)
        raise problem

    def _refuse(self, handle: Handle, node: str, why: str) -> None:
        """Use a node no more. The run goes on without it once it has begun to work on others."""
        text = f"node {self._fleet.name(node)} {why}"
        self._fleet.avoid(node)
        if self._number <= 1 or not self._fleet.usable:
            raise InputError(text)
        self._say(f"{text}; it is not used")
        self._lose(handle, text)
