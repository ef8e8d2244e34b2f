"""cluster.csv: what each node of a cluster did, one row a node and generation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from escalade.engines.report import Report
from escalade.recorders.row import Recorder, Row
from escalade.recorders.tables import TableFile

COLUMNS = (
    "generation",
    "node",
    "workers",
    "members_per_second",
    "env_steps_per_second",
    "lost_chunks",
    "repeated_chunks",
    "idle_share",
)
"""Rates are over the time in which the cluster worked for the run; members count evaluations too."""

_SAY_SECONDS = 30.0


class ClusterFile:
    """Appends what the cluster did since the last generation, and now and then says it in a line.

    Args:
        path: of cluster.csv.
        take_report: gives what was done since it was last called.
        others: recorders that are given the line as a note.
    """

    def __init__(self, path: Path, take_report: Callable[[], Report], others: Sequence[Recorder]) -> None:
        self._table, self._take, self._others = TableFile(path, COLUMNS), take_report, others
        self._said = time.monotonic()

    def generation(self, row: Row) -> None:
        report = self._take()
        seconds = max(report.seconds, 1e-9)
        rows = []
        for part in report.nodes.values():
            counts = part.lost_chunks, part.repeated_chunks, round(report.idle_share(part), 4)
            rates = round(part.items / seconds, 2), round(part.env_steps / seconds, 1)
            rows.append([row.generation, part.name, part.workers, *rates, *counts])
        self._table.write(rows)
        if time.monotonic() - self._said > _SAY_SECONDS:
            self._said = time.monotonic()
            for other in self._others:
                other.note(report.line())

    def note(self, text: str) -> None:
        """A table has no place for notes."""

    def close(self) -> None:
        self._table.close()
