"""The command that draws runs: ``plot``."""

from __future__ import annotations

import argparse
from typing import Any

from escalade.cli.arguments import Parser, add_argument, add_command, whole
from escalade.cli.output import say

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
    add_argument(parser, "--labels", "LABEL,...", "names of the curves, in their order", "what differs")


def add_runs(parser: Parser) -> None:
    """The run folders that a command takes."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="folders of runs, or a folder that holds some")


def add_group_by(parser: Parser) -> None:
    """The flag for what makes a configuration."""
    add_argument(
        parser, "--group-by", "OPTION,...", "options that tell runs apart", "the whole configuration"
    )


def listed(text: str | None) -> list[str] | None:
    """Split what was typed with commas between."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _plot(parsed: argparse.Namespace) -> int:
    from escalade.wings.analysis.plot import plot

    output, smooth = parsed.output or "curve.png", whole("smooth", parsed.smooth) or 1
    groups, labels = listed(parsed.group_by), listed(parsed.labels)
    drawn = plot(parsed.runs, output, x=parsed.x or "steps", smooth=smooth, group_by=groups, labels=labels)
    for note in drawn.left_out:
        say(note)
    say(output)
    return 0
