"""cluster.csv: what each node of a cluster did, one row a node and generation."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from escalade.engines.ray.report import Report
from escalade.recorders.row import Recorder, Row
from escalade.storage.files import storage, write_bytes

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
        path: of cluster.csv. Rows of generations that are run again are dropped.
        take_report: gives what was done since it was last called.
        others: recorders that are given the line as a note.
    """

    def __init__(self, path: Path, take_report: Callable[[], Report], others: Sequence[Recorder]) -> None:
        self._path, self._take, self._others = path, take_report, others
        self._said = time.monotonic()
        self._begun = False

    def generation(self, row: Row) -> None:
        report = self._take()
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        seconds = max(report.seconds, 1e-9)
        for part in report.nodes.values():
            counts = part.lost_chunks, part.repeated_chunks, round(report.idle_share(part), 4)
            rates = round(part.items / seconds, 2), round(part.env_steps / seconds, 1)
            rows.writerow([row.generation, part.name, part.workers, *rates, *counts])
        if not self._begun:
            self._begin(row.generation)
        with storage(self._path), self._path.open("a", encoding="utf-8") as file:
            file.write(text.getvalue())
        if time.monotonic() - self._said > _SAY_SECONDS:
            self._said = time.monotonic()
            for other in self._others:
                other.note(report.line())

    def note(self, text: str) -> None:
        """A table has no place for notes."""

    def close(self) -> None:
        """Nothing is open."""

    def _begin(self, generation: int) -> None:
        """Keep the heading and the rows of earlier generations."""
        self._begun = True
        lines = self._path.read_text(encoding="utf-8").splitlines()[1:] if self._path.exists() else []
        kept = [line for line in lines if line.partition(",")[0].isdecimal()]
        kept = [line for line in kept if int(line.partition(",")[0]) < generation]
        write_bytes(self._path, "\n".join([",".join(COLUMNS), *kept, ""]).encode())
