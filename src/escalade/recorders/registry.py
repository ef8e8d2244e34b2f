"""The recorders by name: a new one is a file in this room and an entry here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from escalade.errors import InputError, nearest
from escalade.recorders.console import Goals, make_console
from escalade.recorders.population import PopulationFile
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
    info: tuple[str, ...] = ()
    """The columns of its rows' ``info``."""

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
    "csv": lambda run: ProgressFile(run.files.progress, run.info),
    "console": lambda run: make_console(run.goals),
    "population": lambda run: PopulationFile(run.files.population),
}
"""What makes a recorder for a run, by name."""


def check_recorders(recorders: Sequence[str | Recorder]) -> None:
    """Refuse what :func:`start_recorders` could not start.

    Raises:
        InputError: a name is unknown, or an object is no recorder.
    """
    if isinstance(recorders, str) or not isinstance(recorders, Sequence):
        raise InputError(f"`recorders` must be a list of names and recorders, not {recorders!r}")
    for which in recorders:
        if isinstance(which, str):
            _named(which)
        elif not all(callable(getattr(which, name, None)) for name in ("generation", "note", "close")):
            raise InputError(
                f"`recorders`: {which!r} is no recorder: it needs the methods generation, note and close"
            )


def start_recorders(wanted: Sequence[str | Recorder], run: Recorded, closing: ExitStack) -> list[Recorder]:
    """A recorder for each of ``wanted``, a name that comes again left out; ``closing`` closes them all.

    Raises:
        InputError: a name is unknown, or what it records into cannot be written.
    """
    named: set[str] = set()
    started: list[Recorder] = []
    for which in wanted:
        if isinstance(which, str) and which in named:
            continue
        named |= {which} if isinstance(which, str) else set()
        started.append(start_recorder(which, run))
        closing.callback(started[-1].close)
    return started


def start_recorder(which: str | Recorder, run: Recorded) -> Recorder:
    """The recorder called ``which``, made for ``run``; a recorder that is made already is returned as it is.

    Raises:
        InputError: there is none of that name, or what it records into cannot be written.
    """
    if not isinstance(which, str):
        return which
    return _named(which)(run)


def _named(name: str) -> Factory:
    if name not in RECORDERS:
        hint = nearest(name, RECORDERS) or f": {', '.join(RECORDERS)}"
        raise InputError(f"`recorders`: there is no recorder {name!r}{hint}")
    return RECORDERS[name]
