"""Facts about a run for its recorders: limits, target and estimated remaining time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from escalade.errors import InputError
from escalade.recorders.row import Row
from escalade.storage.run_folder import RunFolder
from escalade.support.numbers import number


@dataclass(frozen=True)
class Goals:
    """Limits and target of a run, None if not set."""

    title: str
    target_return: float | None = None
    generations: int | None = None
    env_steps: int | None = None
    seconds: float | None = None
    minimize: bool = False
    """True if smaller returns are better."""
    print_evaluations: bool = True
    """True if the plain console prints every evaluation; False if there is one in every generation."""

    def best_of(self, row: Row) -> str:
        """Return the best return of a generation as text."""
        return f"min {number(row.return_min)}" if self.minimize else f"max {number(row.return_max)}"

    def seconds_left(self, row: Row, since: Row | None = None) -> float | None:
        """Return the seconds until the first limit is reached, at the pace since a row or since the start.

        None without a limit, or if the pace is not known yet.
        """
        passed = row.seconds - (0.0 if since is None else since.seconds)
        left = [] if self.seconds is None else [self.seconds - row.seconds]
        for limit, column in ((self.generations, "generation"), (self.env_steps, "env_steps")):
            now, before = (0 if one is None else getattr(one, column) or 0 for one in (row, since))
            if limit is not None and now > before and passed > 0:
                left.append((limit - now) * passed / (now - before))
        return max(0.0, min(left)) if left else None


def _discard(text: str) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class RunInfo:
    """Facts about a run, passed to each of its recorders."""

    folder: RunFolder | None
    """Run folder, or None if the run writes no files."""
    goals: Goals
    """Title, limits and target."""
    info: tuple[str, ...] = ()
    """Columns of ``info`` in its rows."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the run as plain values: the fields of a config, or the arguments of ``evolve``."""
    first: int = 1
    """First generation that will be recorded; more than 1 in a resumed run."""
    repeated: int = 0
    """Number of generations from ``first`` on that were recorded before the run was killed and run again."""
    earlier: Sequence[Row] = ()
    """Rows of a resumed run before ``first``. Empty for a new run."""
    report: Callable[[str], None] = _discard
    """Sends a line for the user to all recorders of the run and to notes.csv, after the run has started."""

    @property
    def files(self) -> RunFolder:
        """Folder for output files.

        Raises:
            InputError: the run has no folder.
        """
        if self.folder is None:
            raise InputError(
                "`recorders`: a recorder that writes files needs a run folder: pass `run_dir` to evolve, or "
                "remove the recorder"
            )
        return self.folder


def duration(seconds: float) -> str:
    """Return a duration as text in its two largest units, such as "3 min 20 s"."""
    whole = round(seconds)
    for unit, length, part, step in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= length:
            return f"{whole // length} {unit} {whole % length // step} {part}"
    return f"{whole} s"
