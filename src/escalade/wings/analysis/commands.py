"""The commands ``plot``, ``compare`` and ``report``."""

from __future__ import annotations

import argparse
from typing import Any

from escalade.cli.arguments import Parser, add_argument, add_command, whole
from escalade.errors import InputError
from escalade.support.output import say

PICTURE = "x.png, x.pdf or x.svg"
X_FORMS = "steps|seconds|generations|episodes"


def add_plot(commands: Any) -> None:
    """``escalade plot``."""
    parser = add_command(
        commands,
        "plot",
        "RUN [RUN ...]",
        _plot,
        more="One run is drawn with its population. Of several, the runs of one configuration become one\n"
        "curve: the interquartile mean of their evaluations, with its 95 % bootstrap interval.",
        examples=[
            "runs/CartPole-v1/ars-seed0-20250101-120000",
            "runs/CartPole-v1 --output curves.svg --x seconds --smooth 3",
            "runs/*/* --group-by strategy,sigma --labels OpenAI-ES,PGPE",
        ],
    )
    add_runs(parser)
    add_argument(parser, "--output", "FILE", PICTURE, "curve.png")
    add_argument(parser, "--x", X_FORMS, "what curves are drawn over", "steps")
    add_argument(parser, "--smooth", "N", "each point is the mean of the last N evaluations", "1")
    add_group_by(parser)
    labels = "names of the curves, in their order"
    add_argument(parser, "--labels", "LABEL,...", labels, "what differs").type = listed


def add_runs(parser: Parser, text: str = "folders of runs, or a folder that holds some") -> None:
    """The run folders that a command takes."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help=text)


def add_group_by(parser: Parser) -> None:
    """The flag for what makes a configuration."""
    apart = "options that tell runs apart"
    add_argument(parser, "--group-by", "OPTION,...", apart, "the whole configuration").type = listed


def listed(text: str) -> list[str]:
    """Split what was typed with commas between."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _given(parsed: argparse.Namespace, *names: str) -> dict[str, Any]:
    """The arguments among these that were typed: of the others, the library's defaults hold."""
    return {name: value for name in names if (value := getattr(parsed, name)) is not None}


def _plot(parsed: argparse.Namespace) -> int:
    from escalade.wings.analysis.plot import plot

    smooth = whole("smooth", parsed.smooth) or 1
    drawn = plot(parsed.runs, smooth=smooth, **_given(parsed, "output", "x", "group_by", "labels"))
    for line in (*drawn.left_out, drawn.path):
        say(str(line))
    return 0


_FORMATS = ("table", "markdown", "csv", "json")


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
        "--json",
        action="store_const",
        dest="format",
        const="json",
        help="the same as --format json (default: no)",
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

    form = parsed.format or "table"
    if form not in _FORMATS:
        raise InputError(f"`format` {form!r} must be one of {', '.join(_FORMATS)}")
    bounds = None if parsed.normalize is None else parse_bounds(parsed.normalize)
    found = compare(parsed.runs, normalize=bounds, **_given(parsed, "group_by", "output"))
    say(str(found) if form == "table" else getattr(found, f"to_{form}")())
    if parsed.output is not None and form == "table":
        say(parsed.output)
    return 0


def add_report(commands: Any) -> None:
    """``escalade report``."""
    parser = add_command(
        commands,
        "report",
        "RUN [RUN ...]",
        _report,
        more="Curves, the population's quantiles, workers, configuration and what differs in it, versions,\n"
        "the command that runs it again, and the film of its policy. Of a sweep: the runs of its best\n"
        "trial, and which options matter. The file needs no network.",
        examples=["runs/CartPole-v1/* --output cartpole.html", "runs/best --video", "runs/sweep-poles"],
    )
    add_runs(parser, "run folders, folders of runs, or that of a sweep for its best trial")
    add_argument(parser, "--output", "FILE", "x.html", "report.html")
    add_argument(parser, "--over", X_FORMS, "what curves are drawn over", "steps")
    parser.add_argument(
        "--video",
        action="store_true",
        help="film the policies first (default: show the films that are in the runs' folders)",
    )


def _report(parsed: argparse.Namespace) -> int:
    from escalade.wings.analysis.report import report

    say(str(report(parsed.runs, video=parsed.video, **_given(parsed, "output", "over"))))
    return 0
