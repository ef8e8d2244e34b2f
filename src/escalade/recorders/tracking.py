"""Trackers: programs that show the numbers of many runs, such as TensorBoard. Their failures end no run."""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from escalade.errors import InputError
from escalade.recorders.population import COLUMNS as QUANTILES
from escalade.recorders.recorded import Recorded
from escalade.recorders.row import Row

_T = TypeVar("_T")


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


@dataclass(frozen=True)
class TrackerEntry:
    """A tracker, before its file is imported; the file's ``start(run)`` gives its :class:`Log`."""

    title: str
    module: str
    package: str
    """What must be installed; Escalade's extra is called like the tracker."""

    def start(self, run: Recorded) -> Log:
        """The log of a run, begun or gone on with."""
        log: Log = importlib.import_module(self.module).start(run)
        return log


TRACKERS: Final[dict[str, TrackerEntry]] = {
    "tensorboard": TrackerEntry("TensorBoard", "escalade.recorders.tensorboard_log", "tensorboard"),
    "wandb": TrackerEntry("Weights & Biases", "escalade.recorders.wandb_log", "wandb"),
}
"""A new one is a file and an entry here."""


def check_tracker(name: str) -> None:
    """Refuse a tracker whose package is missing.

    Raises:
        InputError: names the command that installs it.
    """
    if importlib.util.find_spec(TRACKERS[name].package) is None:
        raise InputError(f"{TRACKERS[name].title} is not installed: pip install 'escalade[{name}]'")


class Tracking:
    """A tracker as a recorder: what it raises is said once, and the run goes on without it."""

    def __init__(self, name: str, run: Recorded) -> None:
        self._title, self._say = TRACKERS[name].title, run.say
        self._log: Log | None = None
        self._log = self._guarded(lambda: TRACKERS[name].start(run))

    def generation(self, row: Row) -> None:
        log = self._log
        if log is not None:
            quantiles = zip(QUANTILES[1:], row.quantiles, strict=False)
            named = row.columns() | dict(quantiles)
            known = {key: value for key, value in named.items() if value is not None and math.isfinite(value)}
            self._guarded(lambda: log.log(row.generation, known))

    def note(self, text: str) -> None:
        log = self._log
        if log is not None:
            self._guarded(lambda: log.note(text))

    def close(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            self._guarded(log.close)

    def _guarded(self, call: Callable[[], _T]) -> _T | None:
        try:
            return call()
        except InputError:  # there is no folder to write into
            raise
        except Exception as problem:  # noqa: BLE001 - whatever a tracker raises, the run is worth more
            self._log = None
            said = " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
            self._say(f"{self._title} failed, and the run goes on without it: {said}")
            return None
