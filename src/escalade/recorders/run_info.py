"""Facts about a run, given to each of its recorders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from escalade.errors import InputError
from escalade.recorders.goals import Goals
from escalade.recorders.progress import read_rows
from escalade.recorders.row import Row
from escalade.storage.run_folder import RunFolder


def _say_nothing(text: str) -> None:
    """Do nothing, where nobody listens."""


@dataclass(frozen=True)
class RunInfo:
    """Facts about a run, given to each of its recorders."""

    folder: RunFolder | None
    """None where the run writes nothing."""
    goals: Goals
    """Its title, its limits and its target."""
    info: tuple[str, ...] = ()
    """The columns of its rows' ``info``."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of the run: the fields of a config, or what ``evolve`` was given, as plain values."""
    first: int = 1
    """The first generation that will be recorded: more than 1 in a run that is resumed."""
    repeated: int = 0
    """Generations from ``first`` on that were recorded before: those of a killed run, which run again."""
    say: Callable[[str], None] = _say_nothing
    """Gives a line for the user to all recorders of the run and to notes.csv, once the run begins."""

    @property
    def files(self) -> RunFolder:
        """The folder to write into.

        Raises:
            InputError: the run has none.
        """
        if self.folder is None:
            raise InputError(
                "`recorders`: a recorder that writes files needs a run folder: evolve's `run_dir` names one"
            )
        return self.folder

    @property
    def earlier(self) -> list[Row]:
        """The rows of a run that is resumed; none of one that begins."""
        if self.folder is None or not self.folder.progress.exists():
            return []
        with suppress(InputError):  # a damaged file is no reason not to go on
            return read_rows(self.folder.progress)
        return []
