"""The command ``report``."""

from __future__ import annotations

import argparse
from typing import Any

from escalade.cli.arguments import add_argument, add_command
from escalade.cli.output import say
from escalade.wings.analysis.command_plot import X_FORMS


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
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="+",
        help="run folders, folders of runs, or that of a sweep for its best trial",
    )
    add_argument(parser, "--output", "FILE", "x.html", "report.html")
    add_argument(parser, "--over", X_FORMS, "what curves are drawn over", "steps")
    parser.add_argument(
        "--video",
        action="store_true",
        help="film the policies first (default: show the films that are in the runs' folders)",
    )


def _report(parsed: argparse.Namespace) -> int:
    from escalade.wings.analysis.report import report

    output = parsed.output or "report.html"
    say(str(report(parsed.runs, output, over=parsed.over or "steps", video=parsed.video)))
    return 0
