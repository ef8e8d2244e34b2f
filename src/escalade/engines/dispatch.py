"""The part that engines with workers share: results come in, and a report says who did what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from escalade.engines.base import ignore_note, keep_waiting
from escalade.engines.results import Results


@dataclass
class NodeReport:
    """One node's part, or one worker process's."""

    name: str
    workers: int = 0
    items: int = 0
    env_steps: int = 0
    busy_seconds: float = 0.0
    lost_chunks: int = 0
    """Chunks that were in the hands of workers that it lost."""
    repeated_chunks: int = 0
    """Chunks that it was given because workers that had them were lost."""


@dataclass
class Report:
    """Some jobs' work, by node id or by worker."""

    nodes: dict[str, NodeReport] = field(default_factory=dict)
    seconds: float = 0.0
    """Seconds in which jobs ran; for worker processes, also the seconds between two jobs."""

    def idle_share(self, part: NodeReport) -> float:
        """The share of a node's worker seconds in which there was nothing to do, from 0 to 1."""
        whole = self.seconds * part.workers
        return min(1.0, max(0.0, 1 - part.busy_seconds / whole)) if whole > 0 else 0.0

    def line(self) -> str:
        """All of it in one line, for people."""
        parts: Sequence[NodeReport] = list(self.nodes.values())
        workers = sum(part.workers for part in parts)
        idle = sum(self.idle_share(part) * part.workers for part in parts) / max(1, workers)
        lost, repeated = (sum(getattr(p, name) for p in parts) for name in ("lost_chunks", "repeated_chunks"))
        steps = sum(part.env_steps for part in parts) / max(self.seconds, 1e-9)
        return (
            f"cluster: {len(parts)} nodes, {workers} workers, {steps:,.0f} steps/s, idle {idle:.0%}, "
            f"{lost} chunks lost, {repeated} repeated"
        )


def max_items_per_worker(share: int, info: Mapping[str, Any]) -> int:
    """Items that keep a worker busy, when ``share`` items are an even part of the whole.

    Args:
        share: items of the job, divided by the workers; at least 1.
        info: what the worker's work says of itself; see :meth:`escalade.engines.base.Work.info`.
    """
    slots = int(info["slots"])
    if info.get("refills", True):
        return min(share, slots + max(1, slots // 2))  # half as many again in reserve
    # Waves of one size: a last one that is nearly empty would cost as long as a full one.
    waves = -(-share // slots)
    return -(-share // waves)


class Dispatcher(ABC):
    """An engine that hands items out to workers, whatever carries the messages between them.

    Args:
        steps: counts environment steps of some results, for the report.
    """

    reports: Literal["nodes", "workers"]
    """The subject of its report."""

    def __init__(self, steps: Callable[[Any], int] | None) -> None:
        self.on_note: Callable[[str], None] = ignore_note
        self.on_wait: Callable[[], None] = keep_waiting
        self._steps = steps
        self._results = Results(0)
        self._report = Report()

    @property
    def info(self) -> dict[str, Any]:
        while not (known := self._infos()):
            self._listen()
        return known[0]

    def take_report(self) -> Report:
        """Return who did what since the last call."""
        taken, self._report = self._report, Report()
        return taken

    @abstractmethod
    def _infos(self) -> list[dict[str, Any]]:
        """The facts of the work of each worker that is ready."""

    @abstractmethod
    def _listen(self) -> None:
        """Wait for messages of workers for a moment, and act on them."""

    def _gather(self) -> Results:
        """Wait until no result of the job is missing."""
        while self._results.missing:
            self._listen()
            if self._infos():
                self.on_wait()
        return self._results

    def _take_in(self, part: NodeReport, results: Results, busy_seconds: float) -> None:
        """Add a worker's results to the job's, and to its ``part`` of the report."""
        part.busy_seconds += busy_seconds
        self._results.raised |= results.raised
        for items, rows in results.in_batches():
            self._results.put_many(items, rows)
            part.items += len(items)
            if self._steps is not None:
                part.env_steps += self._steps(rows)
