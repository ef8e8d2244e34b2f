"""workers.csv: what each worker process did, and how long it waited."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from escalade.engines.report import Report
from escalade.recorders.row import Row
from escalade.recorders.tables import TableFile

COLUMNS = ("generation", "worker", "seconds", "items_per_second", "env_steps_per_second", "idle_share")
"""A row a worker, over the ``seconds`` of wall time up to this generation; items count evaluations too."""

_LEAST_SECONDS = 1.0
_SHARE = 200


class WorkersFile:
    """Appends now and then what the workers did since: in long runs after every 200th part of their time.

    Args:
        path: of workers.csv.
        take_report: gives what was done since it was last called.
    """

    def __init__(self, path: Path, take_report: Callable[[], Report]) -> None:
        self._table, self._take = TableFile(path, COLUMNS), take_report
        self._generation = self._written = 0
        self._began = self._last = time.monotonic()

    def generation(self, row: Row) -> None:
        self._generation = row.generation
        now = time.monotonic()
        if now - self._last >= max(_LEAST_SECONDS, (now - self._began) / _SHARE):
            self._last = now
            self._write()

    def note(self, text: str) -> None:
        """A table has no place for notes."""

    def close(self) -> None:
        if self._generation > self._written:
            self._write()
        self._table.close()

    def _write(self) -> None:
        self._written = self._generation
        done = self._take()
        seconds = max(done.seconds, 1e-9)
        self._table.write(
            (
                self._generation,
                part.name,
                round(seconds, 3),
                round(part.items / seconds, 2),
                round(part.env_steps / seconds, 1),
                round(done.idle_share(part), 4),
            )
            for part in sorted(done.nodes.values(), key=lambda part: int(part.name))
        )
