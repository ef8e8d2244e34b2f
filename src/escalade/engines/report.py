"""A report of an engine's work for some jobs, by node of a cluster or by worker process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


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
