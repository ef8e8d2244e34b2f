"""The commands ``plot``, ``compare`` and ``report``."""

from __future__ import annotations

import argparse
from typing import Any

from escalade.cli.arguments import Parser, add_argument, add_command, whole
from escalade.errors import InputError
from escalade.support.output import print_line

PICTURE = "x.png, x.pdf or x.svg"
X_FORMS = "steps|seconds|generations|episodes"


def add_plot(commands: Any) -> None:
    """Add the command ``plot``."""
    parser = add_command(
        commands,
        "plot",
        "RUN [RUN ...]",
        _plot,
        more="A single run is drawn with its population. With several runs, each configuration becomes one\n"
        "curve: the interquartile mean of its runs' evaluations, with a 95 % bootstrap interval.",
        examples=[
            "runs/CartPole-v1/ars-seed0-20250101-120000",
            "runs/CartPole-v1 --output curves.svg --x seconds --smooth 3",
            "runs/*/* --group-by strategy,sigma --labels OpenAI-ES,PGPE",
        ],
    )
    add_runs(parser)
    add_argument(parser, "--output", "FILE", f"output file: {PICTURE}", "curve.png")
    add_argument(parser, "--x", X_FORMS, "x axis of the curves", "steps")
    add_argument(parser, "--smooth", "N", "window of the trailing mean, in evaluations", "1")
    add_group_by(parser)
    labels = "names of the curves, in order"
    add_argument(parser, "--labels", "LABEL,...", labels, "the options that differ").type = _split_commas


def add_runs(parser: Parser, text: str = "run folders, or folders that contain runs") -> None:
    """Add the positional argument for run folders."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help=text)


def add_group_by(parser: Parser) -> None:
    """Add the flag ``--group-by``."""
    text = "options that define a configuration"
    add_argument(parser, "--group-by", "OPTION,...", text, "all options").type = _split_commas


def _split_commas(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _typed(parsed: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return those of the arguments that were typed; the library's defaults apply to the others."""
    return {name: value for name in names if (value := getattr(parsed, name)) is not None}


def _plot(parsed: argparse.Namespace) -> int:
    from escalade.wings.analysis.plot import plot

    smooth = whole("smooth", parsed.smooth) or 1
    drawn = plot(parsed.runs, smooth=smooth, **_typed(parsed, "output", "x", "group_by", "labels"))
    for line in (*drawn.left_out, drawn.path):
        print_line(str(line))
    return 0


_FORMATS = ("table", "markdown", "csv", "json")


def add_compare(commands: Any) -> None:
    """Add the command ``compare``."""
    parser = add_command(
        commands,
        "compare",
        "RUN [RUN ...]",
        _compare,
        more="Each configuration becomes one line: the mean and the interquartile mean (IQM) of its runs'\n"
        "last evaluations, with a 95 % bootstrap interval, and the medians of training steps and seconds.\n"
        "Unfinished runs count with their latest evaluation; the table shows how many runs have ended.\n"
        "With --normalize, lines with the same label form one method, scored across all environments.",
        examples=[
            "runs/*/*",
            "runs/CartPole-v1 --json",
            "runs/*/* --format csv",
            "runs/Pendulum-v1 --normalize Pendulum-v1=-1200,-150 --output profiles.svg",
        ],
    )
    add_runs(parser)
    add_argument(
        parser, "--format", "|".join(_FORMATS), "output format; csv contains only the lines", "table"
    )
    parser.add_argument(
        "--json",
        action="store_const",
        dest="format",
        const="json",
        help="same as --format json (default: no)",
    )
    add_group_by(parser)
    parser.add_argument(
        "--normalize",
        metavar="ENV=LOW,HIGH",
        action="append",
        help="returns that score 0 and 1; repeat for each environment (default: no scores)",
    )
    add_argument(parser, "--output", "FILE", f"picture of performance profiles: {PICTURE}", "no picture")


def _compare(parsed: argparse.Namespace) -> int:
    from escalade.wings.analysis.compare import compare
    from escalade.wings.analysis.scores import parse_bounds

    form = parsed.format or "table"
    if form not in _FORMATS:
        raise InputError(f"`format` {form!r} must be one of {', '.join(_FORMATS)}")
    bounds = None if parsed.normalize is None else parse_bounds(parsed.normalize)
    found = compare(parsed.runs, normalize=bounds, **_typed(parsed, "group_by", "output"))
    print_line(str(found) if form == "table" else getattr(found, f"to_{form}")())
    if parsed.output is not None and form == "table":
        print_line(parsed.output)
    return 0


def add_report(commands: Any) -> None:
    """Add the command ``report``."""
    parser = add_command(
        commands,
        "report",
        "RUN [RUN ...]",
        _report,
        more="The report contains curves, quantiles of the population, workers, the configuration and its\n"
        "differences, versions, the command to reproduce each run, and a film of the policy. For a sweep:\n"
        "the runs of the best trial, and the importance of the options. The file works offline.",
        examples=["runs/CartPole-v1/* --output cartpole.html", "runs/best --video", "runs/sweep-poles"],
    )
    add_runs(parser, "run folders, folders of runs, or a sweep's folder for its best trial")
    add_argument(parser, "--output", "FILE", "output file: x.html", "report.html")
    add_argument(parser, "--x", X_FORMS, "x axis of the curves", "steps")
    parser.add_argument(
        "--video",
        action="store_true",
        help="film the policies first (default: show the films in the run folders)",
    )


def _report(parsed: argparse.Namespace) -> int:
    from escalade.wings.analysis.report import report

    print_line(str(report(parsed.runs, video=parsed.video, **_typed(parsed, "output", "x"))))
    return 0
