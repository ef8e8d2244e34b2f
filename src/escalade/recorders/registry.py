"""The recorders by name: a new one is a file in this room and an entry here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from escalade.errors import InputError, nearest
from escalade.recorders.console import Goals, make_console
from escalade.recorders.progress import ProgressFile
from escalade.recorders.row import Recorder
from escalade.storage.run_folder import RunFolder


@dataclass(frozen=True)
class Recorded:
    """What a recorder may know of the run that it records."""

    folder: RunFolder | None
    """None where the run writes nothing."""
    goals: Goals
    """Its title, its limits and its target."""

    @property
    def files(self) -> RunFolder:
        """The folder to write into.

        Raises:
            InputError: the run has none.
        """
        if self.folder is None:
            raise InputError("`recorders`: a recorder that writes files needs a run folder: name a `run_dir`")
        return self.folder


Factory = Callable[[Recorded], Recorder]

RECORDERS: Final[dict[str, Factory]] = {
    "csv": lambda run: ProgressFile(run.files.progress),
    "console": lambda run: make_console(run.goals),
}
"""What makes a recorder for a run, by name."""


def start_recorder(which: str | Recorder, run: Recorded) -> Recorder:
    """The recorder called ``which``, made for ``run``; a recorder that is made already is returned as it is.

    Raises:
        InputError: there is none of that name, or what it records into cannot be written.
    """
    if not isinstance(which, str):
        return which
    if which not in RECORDERS:
        hint = nearest(which, RECORDERS) or f": {', '.join(RECORDERS)}"
        raise InputError(f"`recorders`: there is no recorder {which!r}{hint}")
    return RECORDERS[which](run)
