"""The command ``compare``."""

from __future__ import annotations

import argparse
from typing import Any

from escalade.cli.arguments import add_argument, add_command
from escalade.cli.output import say
from escalade.errors import InputError
from escalade.wings.analysis.command_plot import PICTURE, add_group_by, add_runs, listed

_FORMATS = ("table", "markdown", "csv", "latex", "json")


def add_compare(commands: Any) -> None:
    """``escalade compare``."""
    parser = add_command(
        commands,
        "compare",
        "RUN [RUN ...]",
        _compare,
        more="Runs of one configuration make one line: the mean and the interquartile mean (IQM) of their\n"
        "last evaluations with its 95 % bootstrap interval, and medians of training steps and seconds.\n"
        "Of runs that have not ended, it says how many have, and counts the latest evaluations.\n"
        "With --normalize, lines of the same label are one method, scored across all environments.",
        examples=[
            "runs/*/*",
            "runs/CartPole-v1 --json",
            "runs/*/* --format csv",
            "runs/Pendulum-v1 --normalize Pendulum-v1=-1200,-150 --output profiles.svg",
        ],
    )
    add_runs(parser)
    add_argument(
        parser, "--format", "|".join(_FORMATS), "of what is printed; csv has the lines alone", "table"
    )
    parser.add_argument(
        "--json", action="store_true", help="the same as --format json (default: tables of text)"
    )
    add_group_by(parser)
    parser.add_argument(
        "--normalize",
        metavar="ENV=LOW,HIGH",
        action="append",
        help="the returns that score 0 and 1, once for each environment (default: no scores)",
    )
    add_argument(parser, "--output", "FILE", f"performance profiles of scores, {PICTURE}", "no picture")


def _compare(parsed: argparse.Namespace) -> int:
    from escalade.wings.analysis.compare import compare
    from escalade.wings.analysis.scores import parse_bounds

    form = parsed.format or ("json" if parsed.json else "table")
    if form not in _FORMATS:
        raise InputError(f"`format` {form!r} must be one of {', '.join(_FORMATS)}")
    if parsed.json and form != "json":
        raise InputError(f"`json` and `format` {form} were both given: choose one")
    bounds = None if parsed.normalize is None else parse_bounds(parsed.normalize)
    found = compare(parsed.runs, group_by=listed(parsed.group_by), normalize=bounds, output=parsed.output)
    if form == "table":
        say(str(found))
        if parsed.output is not None:
            say(parsed.output)
        return 0
    written = {
        "markdown": found.to_markdown,
        "csv": found.to_csv,
        "latex": found.to_latex,
        "json": found.to_json,
    }
    say(written[form]())
    return 0
