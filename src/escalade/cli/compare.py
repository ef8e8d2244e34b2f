"""The command that compares runs: ``compare``; and its table, which others print too."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from escalade.cli.arguments import add_command
from escalade.cli.curves import add_runs
from escalade.cli.output import say
from escalade.support.numbers import number
from escalade.support.output import printing

if TYPE_CHECKING:
    from rich.table import Table

    from escalade.api.compare import Comparison, Line


def add_compare(commands: Any) -> None:
    """``escalade compare``."""
    parser = add_command(
        commands,
        "compare",
        "RUN [RUN ...]",
        "print a table of how runs ended, and the options in which they differ",
        _compare,
        more="Runs of one configuration make one line: the mean and the interquartile mean (IQM) of their\n"
        "last evaluations with its 95 % bootstrap interval, and medians of training steps and seconds.\n"
        "Of runs that have not ended, it says how many have, and counts the latest evaluations.",
        examples=["runs/*/*", "runs/CartPole-v1 --json"],
    )
    add_runs(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: tables of text)")


def say_comparison(found: Comparison) -> None:
    """Print a table for each environment, and the options in which the lines differ."""
    from rich.console import Console

    with printing():
        for task in dict.fromkeys(line.env for line in found.lines):
            Console().print(f"{task}:", markup=False, highlight=False)
            Console().print(_table([line for line in found.lines if line.env == task]))
        if found.options:
            Console().print("\nwhat differs:")
            Console().print(_differences(found))


def _table(lines: Sequence[Line]) -> Table:
    from rich.markup import escape
    from rich.table import Column, Table

    names = ("runs", "mean", "IQM [95 %]", "solved", "steps", "seconds")
    right = [Column(name, justify="right", no_wrap=True) for name in names]
    table = Table(Column("config", overflow="fold"), *right, box=None)
    for line in lines:
        table.add_row(escape(line.label), *_cells(line))
    return table


def _differences(found: Comparison) -> Table:
    from rich.markup import escape
    from rich.table import Column, Table

    several = len({line.env for line in found.lines}) > 1
    names = [f"{line.env}: {line.label}" if several else line.label for line in found.lines]
    columns = [Column(escape(name), overflow="fold") for name in names]
    table = Table(Column("option", no_wrap=True), *columns, box=None)
    for option, values in found.options.items():
        if option != "env":
            table.add_row(option, *map(escape, values))
    return table


def _cells(line: Line) -> list[str]:
    runs = f"{len(line.runs)}" if line.ended == len(line.runs) else f"{line.ended} of {len(line.runs)}"
    iqm = number(line.return_iqm)
    if line.return_low is not None:
        iqm += f" [{number(line.return_low)}, {number(line.return_high)}]"
    numbers = ["-" if line.env_steps is None else f"{line.env_steps:,.0f}", number(line.seconds)]
    return [runs, number(line.return_mean), iqm, str(line.solved), *numbers]


def _compare(parsed: argparse.Namespace) -> int:
    from escalade.api.compare import compare

    found = compare(parsed.runs)
    if parsed.json:
        say(json.dumps(asdict(found)))
    else:
        say_comparison(found)
    return 0
