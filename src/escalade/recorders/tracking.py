"""Trackers: programs that show the numbers of many runs, such as TensorBoard. Their failures end no run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, Protocol

from escalade.errors import InputError, StorageFailure, one_line
from escalade.recorders.goals import RunInfo
from escalade.recorders.row import QUANTILES, Row
from escalade.support.registry import Entry


class Log(Protocol):
    """The methods of a tracker. Whatever it raises ends the tracking, and not the run."""

    def log(self, generation: int, numbers: Mapping[str, float]) -> None:
        """Take the numbers of a generation, by the columns of progress.csv and population.csv."""
        ...

    def note(self, text: str) -> None:
        """Take a line for the user."""
        ...

    def close(self) -> None:
        """Write what is not written; the run is over."""
        ...


TRACKERS: Final[dict[str, Entry]] = {
    "tensorboard": Entry(
        "TensorBoard", "escalade.recorders.tensorboard_log:TensorBoardLog", ("tensorboard",), "tensorboard"
    ),
    "wandb": Entry("Weights & Biases", "escalade.recorders.wandb_log:WandbLog", ("wandb",), "wandb"),
}
"""A new one is a file with a :class:`Log` of a run, begun or gone on with, and an entry here."""


class Tracking:
    """A tracker as a recorder: what it raises is said once, and the run goes on without it."""

    def __init__(self, tracker: Entry, run: RunInfo) -> None:
        self._title, self._say = tracker.title, run.say
        self._log: Log | None = None
        with self._guarded():
            self._log = tracker.load()(run)

    def generation(self, row: Row) -> None:
        quantiles = zip(QUANTILES, row.quantiles, strict=False)
        named = row.columns() | dict(quantiles)
        known = {key: value for key, value in named.items() if value is not None and math.isfinite(value)}
        with self._guarded():
            if self._log is not None:
                self._log.log(row.generation, known)

    def note(self, text: str) -> None:
        with self._guarded():
            if self._log is not None:
                self._log.note(text)

    def close(self) -> None:
        log, self._log = self._log, None
        with self._guarded():
            if log is not None:
                log.close()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Say what the tracker raises, and have it log no more."""
        try:
            yield
        except InputError:  # there is no folder to write into
            raise
        except Exception as problem:  # noqa: BLE001 - whatever a tracker raises, the run is worth more
            self._log = None
            said = one_line(problem)[:300]
            with suppress(StorageFailure):  # of notes.csv: no reason to end the run either
                self._say(f"{self._title} failed, and the run goes on without it: {said}")
