"""Result of a comparison of runs, as text tables and as data for programs."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from escalade.support.numbers import number
from escalade.support.output import data_frame, visible
from escalade.wings.analysis.scores import Scores
from escalade.wings.analysis.statistics import Estimate

_LEAST_WIDTH = 120
"""Minimum width of a table, so that numbers do not squeeze out names. Narrow terminals wrap the lines."""
_LINE = ("config", "runs", "mean", "IQM [95 %]", "episodes", "solved", "steps", "seconds")


@dataclass(frozen=True)
class Table:
    """Table of text cells. The first column is text; the others are numbers if ``numbers`` is true."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: bool = True
    notes: tuple[str, ...] = ()
    """Lines below the table."""

    def markdown(self) -> str:
        """Return the table in GitHub-flavoured Markdown, with title and notes."""
        marks = ["---", *(["---:" if self.numbers else "---"] * (len(self.columns) - 1))]
        cells = [tuple(map(_in_markdown, line)) for line in (self.columns, *self.rows)]
        written = [f"| {' | '.join(line)} |" for line in (cells[0], marks, *cells[1:])]
        below = [line for note in self.notes for line in ("", _in_markdown(note))]
        return "\n".join([f"**{_in_markdown(self.title)}**", "", *written, *below])

    def html(self) -> str:
        """Return the table as HTML."""
        title = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        rows = [("th", self.columns), *(("td", row) for row in self.rows)]
        written = ("".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in row) for kind, row in rows)
        body = "".join(f"<tr>{row}</tr>" for row in written)
        below = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<table>{title}{body}</table>{below}"


def _in_markdown(text: str) -> str:
    return re.sub(r"([\\`*_|<\[])", r"\\\1", " ".join(text.split()))


@dataclass(frozen=True)
class ComparisonLine:
    """Results of the runs of one configuration. A number is None if no run has it."""

    env: str
    label: str
    runs: tuple[str, ...]
    seeds: tuple[int, ...]
    ended: int
    """Number of runs that ended. The others are running or were interrupted."""
    solved: int
    at_target: int
    """Number of runs that stopped at their target. Their last return was selected by that rule."""
    eval_episodes: int
    """Total number of evaluation episodes behind the returns, over all runs."""
    return_mean: float | None
    """Mean return of the runs' latest evaluations."""
    return_iqm: float | None
    """Interquartile mean of the same returns."""
    return_low: float | None
    return_high: float | None
    """Bounds of the 95 % bootstrap interval of ``return_iqm``; None for a single run."""
    env_steps: float | None
    """Median over the runs."""
    seconds: float | None
    """Median over the runs."""
    without_return: tuple[str, ...] = ()
    """Runs whose last evaluation is not a number. They are excluded from the means."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """Result of :func:`compare`. Notebooks display its tables."""

    lines: tuple[ComparisonLine, ...]
    options: dict[str, tuple[str, ...]]
    """Options in which the lines differ, each with one value per line."""
    scores: Scores | None = None
    """Scores of methods across tasks; None without ``normalize``."""

    def to_pandas(self) -> Any:
        """Return the lines as a ``pandas.DataFrame``, with a column ``option_NAME`` per differing option.

        Raises:
            InputError: pandas is not installed.
        """
        rows = self._records()
        return data_frame({name: [row[name] for row in rows] for name in rows[0]})

    def to_markdown(self) -> str:
        """Return the tables in GitHub-flavoured Markdown."""
        return "\n\n".join(table.markdown() for table in self.tables())

    def to_csv(self) -> str:
        """Return the lines as comma-separated values, unrounded, with the columns of :meth:`to_pandas`."""
        rows, text = self._records(), io.StringIO(newline="")
        writer = csv.DictWriter(text, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().rstrip("\n")

    def to_json(self) -> str:
        """Return the whole comparison as one JSON object."""
        return json.dumps(asdict(self), default=lambda array: array.tolist())

    def __str__(self) -> str:
        """Return the tables as plain text, as printed by ``escalade compare``."""
        return _as_text(self.tables())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self.tables())

    def tables(self) -> list[Table]:
        """Return one table per environment, then the options in which lines differ, then the scores."""
        made = []
        for task in dict.fromkeys(line.env for line in self.lines):
            lines = [line for line in self.lines if line.env == task]
            made.append(Table(task, _LINE, tuple(map(_cells, lines)), notes=_notes(lines)))
        options = tuple((name, *values) for name, values in self.options.items() if name != "env")
        if options:
            several = len(made) > 1
            names = [f"{line.env}: {line.label}" if several else line.label for line in self.lines]
            made.append(Table("differences", ("option", *names), options, numbers=False))
        return made if self.scores is None else made + _score_tables(self.scores)

    def _records(self) -> list[dict[str, Any]]:
        """Return the lines as rows of plain values, with run counts and the options that differ."""
        return [
            asdict(line)
            | {"runs": len(line.runs), "seeds": ",".join(map(str, line.seeds))}
            | {"without_return": len(line.without_return)}
            | {f"option_{name}": values[at] for name, values in self.options.items() if name != "env"}
            for at, line in enumerate(self.lines)
        ]


def _as_text(tables: Sequence[Table]) -> str:
    """Return all tables as text, as wide as the terminal but at least :data:`_LEAST_WIDTH` columns."""
    from rich.console import Console
    from rich.table import Column
    from rich.table import Table as Printed

    written = io.StringIO()
    console = Console(file=written, highlight=False, emoji=False, markup=False)
    console.width = max(console.width, _LEAST_WIDTH)
    for at, table in enumerate(tables):
        if at:
            console.print()
        console.print(f"{visible(table.title)}:")
        looks: dict[str, Any] = {"overflow": "fold"}
        if table.numbers:
            looks = {"justify": "right", "no_wrap": True}
        first = Column(table.columns[0], overflow="fold", no_wrap=not table.numbers)
        printed = Printed(first, *(Column(name, **looks) for name in table.columns[1:]), box=None)
        for row in table.rows:
            printed.add_row(*map(visible, row))
        console.print(printed)
        for note in table.notes:
            console.print(f" {visible(note)}")
    return written.getvalue().rstrip("\n")


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


def _notes(lines: Sequence[ComparisonLine]) -> tuple[str, ...]:
    """Return notes about stopped runs, runs without a return, and repeated seeds."""
    notes = []
    if stopped := sum(line.at_target for line in lines):
        notes.append(
            f"* {stopped} of {sum(len(line.runs) for line in lines)} runs stopped at their target: "
            "their returns may be partly luck, unlike returns after a fixed budget"
        )
    for line in lines:
        notes += [f"no return: the last evaluation of {run} is not a number" for run in line.without_return]
        notes += _repeated_seeds(line)
    return tuple(notes)


def _repeated_seeds(line: ComparisonLine) -> list[str]:
    """Return notes about seeds of several runs, which add no evidence if the options are the same."""
    return [
        f"{line.label}: {times} runs have seed {seed}; with the same options they are copies of one run, "
        "possibly of different lengths, and the interval is too narrow"
        for seed, times in Counter(line.seeds).items()
        if times > 1
    ]


def _score_tables(scores: Scores) -> list[Table]:
    bounds = ", ".join(f"{task}={low:g},{high:g}" for task, (low, high) in scores.bounds.items())
    rows = [(of.label, str(of.runs), _within(of.score)) for of in scores.methods]
    notes = [f"returns that score 0 and 1: {bounds}"]
    notes += [f"left out: {label} has no run on {', '.join(of)}" for label, of in scores.left_out.items()]
    made = [Table("normalized scores", ("config", "runs", "IQM [95 %]"), tuple(rows), notes=tuple(notes))]
    pairs = tuple((f"{of.first} over {of.second}", _within(of.probability)) for of in scores.improvements)
    if pairs:
        made.append(Table("probability of improvement", ("config", "P [95 %]"), pairs))
    return made


def _within(of: Estimate) -> str:
    return f"{of.value:.3f}" if of.low is None else f"{of.value:.3f} [{of.low:.3f}, {of.high:.3f}]"
