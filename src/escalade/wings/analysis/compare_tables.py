"""A comparison of runs in tables: of text, for terminals and pages, and of plain values, for programs."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from escalade.support.numbers import number
from escalade.support.output import visible
from escalade.wings.analysis.tables import Table

if TYPE_CHECKING:
    from escalade.wings.analysis.compare import Comparison, ComparisonLine
    from escalade.wings.analysis.scores import Scores

_LEAST_WIDTH = 120
"""Least width of a table, also on narrower terminals, which wrap its lines: numbers would crowd out names."""
_LINE = ("config", "runs", "mean", "IQM [95 %]", "episodes", "solved", "steps", "seconds")


def tables(found: Comparison) -> list[Table]:
    """A table for each environment, the options in which the lines differ, and the scores across tasks."""
    made = []
    for task in dict.fromkeys(line.env for line in found.lines):
        lines = [line for line in found.lines if line.env == task]
        made.append(Table(task, _LINE, tuple(map(_cells, lines)), notes=_notes(lines, found.copies)))
    options = tuple((name, *values) for name, values in found.options.items() if name != "env")
    if options:
        several = len(made) > 1
        names = [f"{line.env}: {line.label}" if several else line.label for line in found.lines]
        made.append(Table("what differs", ("option", *names), options, numbers=False))
    if found.scores is not None:
        made += _score_tables(found.scores)
    return made


def as_text(found: Comparison) -> str:
    """Return all tables as text, as wide as the terminal but at least :data:`_LEAST_WIDTH` columns."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column
    from rich.table import Table as Printed

    written = io.StringIO()
    console = Console(file=written, highlight=False, emoji=False)
    console.width = max(console.width, _LEAST_WIDTH)
    for at, table in enumerate(tables(found)):
        between = "\n" if at else ""
        console.print(f"{between}{visible(table.title)}:", markup=False)
        first = Column(escape(table.columns[0]), overflow="fold", no_wrap=not table.numbers)
        names = map(escape, table.columns[1:])
        others = [
            Column(name, justify="right", no_wrap=True) if table.numbers else Column(name, overflow="fold")
            for name in names
        ]
        printed = Printed(first, *others, box=None)
        for row in table.rows:
            printed.add_row(*(escape(visible(cell)) for cell in row))
        console.print(printed)
        for note in table.notes:
            console.print(f" {visible(note)}", markup=False)
    return written.getvalue().rstrip("\n")


def records(found: Comparison) -> list[dict[str, Any]]:
    """The lines as rows of plain values: how many runs, their numbers, and each option that differs."""
    return [
        asdict(line)
        | {"runs": len(line.runs), "seeds": ",".join(map(str, line.seeds))}
        | {"without_return": len(line.without_return)}
        | {f"option_{name}": values[at] for name, values in found.options.items() if name != "env"}
        for at, line in enumerate(found.lines)
    ]


def _cells(line: ComparisonLine) -> tuple[str, ...]:
    runs = f"{len(line.runs)}" if line.ended == len(line.runs) else f"{line.ended} of {len(line.runs)}"
    mark = "*" if line.at_target else ""
    iqm = number(line.return_iqm) + mark
    if line.return_low is not None:
        iqm += f" [{number(line.return_low)}, {number(line.return_high)}]"
    mean = number(line.return_mean) + mark
    steps = "-" if line.env_steps is None else f"{line.env_steps:,.0f}"
    seconds = number(line.seconds)
    return line.label, runs, mean, iqm, f"{line.eval_episodes:,}", str(line.solved), steps, seconds


def _notes(lines: Sequence[ComparisonLine], copies: Mapping[str, str]) -> tuple[str, ...]:
    """Say which returns the rule that stopped their runs selected, and which folders did not count."""
    runs = [run for line in lines for run in line.runs]
    left_out = [f"left out: {copy} is a copy of {of}" for copy, of in copies.items() if of in runs]
    diverged = [run for line in lines for run in line.without_return]
    left_out += [f"without a return: the last evaluation of {run} is no number" for run in diverged]
    left_out += [note for line in lines for note in _repeated_seeds(line)]
    stopped = sum(line.at_target for line in lines)
    if not stopped:
        return tuple(left_out)
    chosen = (
        f"* {stopped} of {len(runs)} runs stopped at their target: that rule chose their last return, which "
        "says less than one of a fixed budget"
    )
    return chosen, *left_out


def _repeated_seeds(line: ComparisonLine) -> list[str]:
    """Say which seeds stand for several runs: they are no further evidence where the options are the same."""
    return [
        f"{line.label}: seed {seed} is that of {times} runs, which with the same options are one run at "
        "several lengths: the interval says more than it knows"
        for seed, times in Counter(line.seeds).items()
        if times > 1
    ]


def _score_tables(scores: Scores) -> list[Table]:
    bounds = ", ".join(f"{task}={low:g},{high:g}" for task, (low, high) in scores.bounds.items())
    rows = [
        (of.label, str(of.runs), _within(of.score_iqm, of.score_low, of.score_high)) for of in scores.methods
    ]
    notes = [f"a score is 0 and 1 at: {bounds}"]
    notes += [f"left out: {label} has no run on {', '.join(of)}" for label, of in scores.left_out.items()]
    made = [Table("normalised scores", ("config", "runs", "IQM [95 %]"), tuple(rows), notes=tuple(notes))]
    pairs = tuple(
        (f"{of.first} over {of.second}", _within(of.probability, of.low, of.high))
        for of in scores.improvements
    )
    if pairs:
        made.append(Table("probability of improvement", ("config", "P [95 %]"), pairs))
    return made


def _within(value: float, low: float | None, high: float | None) -> str:
    return f"{value:.3f}" if low is None else f"{value:.3f} [{low:.3f}, {high:.3f}]"
