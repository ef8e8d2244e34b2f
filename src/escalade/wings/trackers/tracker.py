"""Base class of recorders for experiment trackers. Failures of a tracker do not end the run."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from escalade.errors import InputError, StorageFailure, one_line
from escalade.recorders.goals import RunInfo
from escalade.recorders.row import QUANTILES, Row


class Tracker:
    """Recorder that sends the numbers of a run to a tracker.

    If a method of a subclass raises, one note reports it, and the run continues without the tracker.
    """

    title: ClassVar[str]
    """Name of the tracker."""

    def __init__(self, run: RunInfo) -> None:
        self._report, self._works = run.report, True
        self._try(self.start, run)

    @abstractmethod
    def start(self, run: RunInfo) -> None:
        """Start a run, or continue a resumed one."""

    @abstractmethod
    def log(self, generation: int, numbers: Mapping[str, float]) -> None:
        """Log the numbers of a generation, by the columns of progress.csv and population.csv."""

    def write_note(self, text: str) -> None:
        """Log a note. Trackers without notes need not override this."""

    @abstractmethod
    def finish(self) -> None:
        """Flush and close at the end of the run."""

    def generation(self, row: Row) -> None:
        named = row.columns() | dict(zip(QUANTILES, row.quantiles, strict=False))
        known = {key: value for key, value in named.items() if value is not None and math.isfinite(value)}
        self._try(self.log, row.generation, known)

    def note(self, text: str) -> None:
        self._try(self.write_note, text)

    def close(self) -> None:
        self._try(self.finish)
        self._works = False

    def _try(self, method: Callable[..., None], *arguments: Any) -> None:
        if not self._works:
            return
        try:
            method(*arguments)
        except InputError:  # the run has no folder
            raise
        except Exception as problem:  # noqa: BLE001 - a failure of a tracker must not end the run
            self._works = False
            reason = one_line(problem)[:300]
            with suppress(StorageFailure):  # failing to write notes.csv must not end the run either
                self._report(f"{self.title} failed, and the run continues without it: {reason}")
