"""Trackers: programs that show the numbers of many runs, such as TensorBoard. Their failures end no run."""

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
    """A recorder that gives a run's numbers to another program.

    What a subclass's methods raise is said once, and the run goes on without it.
    """

    title: ClassVar[str]
    """The program's name."""

    def __init__(self, run: RunInfo) -> None:
        self._say, self._works = run.say, True
        self._try(self.start, run)

    @abstractmethod
    def start(self, run: RunInfo) -> None:
        """Begin to show a run, or go on with it."""

    @abstractmethod
    def log(self, generation: int, numbers: Mapping[str, float]) -> None:
        """Take the numbers of a generation, by the columns of progress.csv and population.csv."""

    def write_note(self, text: str) -> None:
        """Take a line for the user; programs that have no place for lines leave this out."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is not written; the run is over."""

    def generation(self, row: Row) -> None:
        named = row.columns() | dict(zip(QUANTILES, row.quantiles, strict=False))
        known = {key: value for key, value in named.items() if value is not None and math.isfinite(value)}
        self._try(self.log, row.generation, known)

    def note(self, text: str) -> None:
        self._try(self.write_note, text)

    def close(self) -> None:
        self._try(self.finish)
        self._works = False

    def _try(self, method: Callable[..., None], *given: Any) -> None:
        if not self._works:
            return
        try:
            method(*given)
        except InputError:  # there is no folder to write into
            raise
        except Exception as problem:  # noqa: BLE001 - whatever a tracker raises, the run is worth more
            self._works = False
            said = one_line(problem)[:300]
            with suppress(StorageFailure):  # of notes.csv: no reason to end the run either
                self._say(f"{self.title} failed, and the run goes on without it: {said}")
