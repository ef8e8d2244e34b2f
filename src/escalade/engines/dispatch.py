"""Base class of engines with workers: collects results and reports on each worker's or node's share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from escalade.engines.base import ignore_note, keep_waiting
from escalade.engines.results import Results


@dataclass
class NodeReport:
    """Share of one node or one worker process in the work."""

    name: str
    workers: int = 0
    items: int = 0
    env_steps: int = 0
    busy_seconds: float = 0.0
    lost_chunks: int = 0
    """Chunks of items that its lost workers had not finished."""
    repeated_chunks: int = 0
    """Chunks of lost workers that it ran again."""


@dataclass
class Report:
    """Work of some jobs, by node id or by worker."""

    nodes: dict[str, NodeReport] = field(default_factory=dict)
    seconds: float = 0.0
    """Seconds during which jobs ran. For worker processes, this includes the time between jobs."""

    def idle_share(self, part: NodeReport) -> float:
        """Return the share of a node's worker seconds that was idle, from 0 to 1."""
        whole = self.seconds * part.workers
        return min(1.0, max(0.0, 1 - part.busy_seconds / whole)) if whole > 0 else 0.0

    def line(self) -> str:
        """Return a summary in one line."""
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
    """Return the number of items that keeps a worker busy.

    Args:
        share: items of the job divided by the number of workers, at least 1.
        info: facts about the worker, see :meth:`escalade.engines.base.Work.info`.
    """
    slots = int(info["slots"])
    if info.get("refills", True):
        return min(share, slots + max(1, slots // 2))  # 50% more in reserve
    # Waves of equal size: a nearly empty last wave would take as long as a full one.
    waves = -(-share // slots)
    return -(-share // waves)


class Dispatcher(ABC):
    """An engine that distributes items to workers, independent of the transport.

    Args:
        steps: returns the number of environment steps of some results, for the report.
    """

    reports: Literal["nodes", "workers"]
    """Unit of the report."""

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
        """Return the work done since the last call."""
        taken, self._report = self._report, Report()
        return taken

    @abstractmethod
    def _infos(self) -> list[dict[str, Any]]:
        """Return :meth:`Work.info` of each worker that is ready."""

    @abstractmethod
    def _listen(self) -> None:
        """Wait briefly for messages of workers and handle them."""

    def _gather(self) -> Results:
        """Wait for all results of the job and return them."""
        while self._results.missing:
            self._listen()
            if self._infos():
                self.on_wait()
        return self._results

    def _take_in(self, part: NodeReport, results: Results, busy_seconds: float) -> None:
        """Add a worker's results to those of the job and to its ``part`` of the report."""
        part.busy_seconds += busy_seconds
        self._results.raised |= results.raised
        for items, rows in results.in_batches():
            self._results.put_many(items, rows)
            part.items += len(items)
            if self._steps is not None:
                part.env_steps += self._steps(rows)
