"""workers.csv and cluster.csv: what each worker process, or each node of a cluster, did."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from escalade.engines.dispatch import NodeReport, Report
from escalade.recorders.row import Recorder, Row
from escalade.recorders.tables import TableFile

_LEAST_SECONDS = 1.0
_SHARE = 200
_SAY_SECONDS = 30.0


class WorkersFile(TableFile):
    """Appends now and then what the workers did since: in long runs after every 200th part of their time.

    A row a worker, over the ``seconds`` of wall time up to this generation; items count evaluations too.

    Args:
        path: of workers.csv.
        take_report: gives what was done since it was last called.
    """

    COLUMNS = ("generation", "worker", "seconds", "items_per_second", "env_steps_per_second", "idle_share")

    def __init__(self, path: Path, take_report: Callable[[], Report]) -> None:
        super().__init__(path, self.COLUMNS)
        self._take = take_report
        self._generation = self._written = 0
        self._began = self._last = time.monotonic()

    def generation(self, row: Row) -> None:
        self._generation = row.generation
        now = time.monotonic()
        if now - self._last >= max(_LEAST_SECONDS, (now - self._began) / _SHARE):
            self._last = now
            self._write_report()

    def close(self) -> None:
        if self._generation > self._written:
            self._write_report()
        super().close()

    def _write_report(self) -> None:
        self._written = self._generation
        done = self._take()
        self.write(
            (self._generation, part.name, round(done.seconds, 3), *_rates(done, part), _idle(done, part))
            for part in sorted(done.nodes.values(), key=lambda part: int(part.name))
        )


class ClusterFile(TableFile):
    """Appends what the cluster did since the last generation, and now and then says it in a line.

    A row a node; rates are over the time in which the cluster worked for the run; members count evaluations
    too.

    Args:
        path: of cluster.csv.
        take_report: gives what was done since it was last called.
        others: recorders that are given the line as a note.
    """

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

    def __init__(self, path: Path, take_report: Callable[[], Report], others: Sequence[Recorder]) -> None:
        super().__init__(path, self.COLUMNS)
        self._take, self._others = take_report, others
        self._said = time.monotonic()

    def generation(self, row: Row) -> None:
        done = self._take()
        rows = []
        for part in done.nodes.values():
            shares = part.lost_chunks, part.repeated_chunks, _idle(done, part)
            rows.append((row.generation, part.name, part.workers, *_rates(done, part), *shares))
        self.write(rows)
        if time.monotonic() - self._said > _SAY_SECONDS:
            self._said = time.monotonic()
            for other in self._others:
                other.note(done.line())


def _rates(done: Report, part: NodeReport) -> tuple[float, float]:
    """Items and environment steps a second."""
    seconds = max(done.seconds, 1e-9)
    return round(part.items / seconds, 2), round(part.env_steps / seconds, 1)


def _idle(done: Report, part: NodeReport) -> float:
    return round(done.idle_share(part), 4)
