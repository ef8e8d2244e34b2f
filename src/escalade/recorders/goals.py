"""The facts about a run that its recorders get: limits, target, and how long it will take to get there."""

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
    """The limits and the target of a run; None where there is none."""

    title: str
    target_return: float | None = None
    generations: int | None = None
    env_steps: int | None = None
    seconds: float | None = None
    minimize: bool = False
    """True where smaller returns are better."""
    print_evaluations: bool = True
    """True where each evaluation is a line without a terminal: not where one comes every generation."""

    def best_of(self, row: Row) -> str:
        """The best return of a generation, in words."""
        return f"min {number(row.return_min)}" if self.minimize else f"max {number(row.return_max)}"

    def seconds_left(self, row: Row, since: Row | None = None) -> float | None:
        """Seconds until the first budget is spent, at the pace since a row, or since the beginning.

        None if there is no budget, or no pace yet.
        """
        passed = row.seconds - (0.0 if since is None else since.seconds)
        left = [] if self.seconds is None else [self.seconds - row.seconds]
        for limit, column in ((self.generations, "generation"), (self.env_steps, "env_steps")):
            now, before = (0 if one is None else getattr(one, column) or 0 for one in (row, since))
            if limit is not None and now > before and passed > 0:
                left.append((limit - now) * passed / (now - before))
        return max(0.0, min(left)) if left else None


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
    earlier: Sequence[Row] = ()
    """The rows of a run that is resumed; none of one that begins."""
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


def duration(seconds: float) -> str:
    """A time in words, in its two largest units."""
    whole = round(seconds)
    for unit, length, part, step in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= length:
            return f"{whole // length} {unit} {whole % length // step} {part}"
    return f"{whole} s"
