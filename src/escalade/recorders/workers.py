"""workers.csv: what each worker process, or each node of a cluster, did."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from escalade.engines.dispatch import Report
from escalade.recorders.row import Recorder, Row
from escalade.recorders.tables import TableFile

_LEAST_SECONDS = 1.0
_SHARE = 200
_SAY_SECONDS = 30.0


class WorkersFile(TableFile):
    """Appends now and then what the workers did since: in long runs after every 200th part of their time.

    A row a worker process, or a node with all its workers, over ``seconds``; items count evaluations too.

    Args:
        path: of workers.csv.
        take_report: gives what was done since it was last called.
        told: recorders that are given a line about all of it as a note, now and then.
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

    def __init__(self, path: Path, take_report: Callable[[], Report], told: Sequence[Recorder] = ()) -> None:
        super().__init__(path, self.COLUMNS)
        self._take, self._told = take_report, told
        self._generation = self._written = 0
        self._began = self._last = self._said = time.monotonic()

    def generation(self, row: Row) -> None:
        self._generation = row.generation
        now = time.monotonic()
        if now - self._last >= max(_LEAST_SECONDS, (now - self._began) / _SHARE):
            self._last = now
            done = self._write_report()
            if now - self._said > _SAY_SECONDS:
                self._said = now
                for other in self._told:
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
