"""workers.csv: the work of each worker process, or of each node of a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from escalade.engines.dispatch import Report
from escalade.recorders.row import Recorder, Row
from escalade.recorders.tables import TableFile

_LEAST_SECONDS = 1.0
_SHARE = 200
_NOTE_SECONDS = 30.0


class WorkersFile(TableFile):
    """Appends the work of the workers at intervals of 1 s, or 1/200 of the run time if that is longer.

    A row is the work of a worker process, or a node with all its workers, in ``seconds``. Items include
    evaluations.

    Args:
        path: path of workers.csv.
        take_report: returns the work done since its last call.
        recorders: receive a summary as a note every 30 s.
    """

    COLUMNS = (
        "generation",
        "worker",
        "workers",
        "seconds",
        "items_per_second",
        "env_steps_per_second",
        "lost_chunks",
        "repeated_chunks",
        "idle_share",
    )

    def __init__(
        self, path: Path, take_report: Callable[[], Report], recorders: Sequence[Recorder] = ()
    ) -> None:
        super().__init__(path, self.COLUMNS)
        self._take, self._recorders = take_report, recorders
        self._generation = self._written = 0
        self._started = self._last = self._noted = time.monotonic()

    def generation(self, row: Row) -> None:
        self._generation = row.generation
        now = time.monotonic()
        if now - self._last >= max(_LEAST_SECONDS, (now - self._started) / _SHARE):
            self._last = now
            done = self._write_report()
            if now - self._noted > _NOTE_SECONDS:
                self._noted = now
                for other in self._recorders:
                    other.note(done.line())

    def close(self) -> None:
        if self._generation > self._written:
            self._write_report()
        super().close()

    def _write_report(self) -> Report:
        self._written = self._generation
        done = self._take()
        seconds = max(done.seconds, 1e-9)
        self.write(
            (
                self._generation,
                part.name,
                part.workers,
                round(done.seconds, 3),
                round(part.items / seconds, 2),
                round(part.env_steps / seconds, 1),
                part.lost_chunks,
                part.repeated_chunks,
                round(done.idle_share(part), 4),
            )
            for part in sorted(done.nodes.values(), key=lambda part: (len(part.name), part.name))
        )
        return done
