"""The commands that draw runs: ``plot`` and ``aggregate``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from escalade.cli.arguments import Parser, add_argument, add_command, whole
from escalade.cli.output import say
from escalade.support.numbers import number

_X = "steps|seconds|generations|episodes"
_PICTURE = "x.png, x.pdf or x.svg"


def add_plot(commands: Any) -> None:
    """``escalade plot``."""
    parser = add_command(
        commands,
        "plot",
        "RUN [RUN ...]",
        "draw the learning curves of runs",
        _plot,
        more="One run is drawn with its population. Of several, the runs of one configuration become one\n"
        "curve: the interquartile mean of their evaluations, with its 95 % bootstrap interval.",
        examples=[
            "runs/CartPole-v1/openai-es-seed0-20250101-120000",
            "runs/CartPole-v1 --output curves.svg --x seconds --smooth 3",
            "runs/*/* --group-by strategy,sigma --labels OpenAI-ES,PGPE",
        ],
    )
    add_runs(parser)
    add_argument(parser, "--output", "FILE", _PICTURE, "curve.png")
    add_argument(parser, "--x", _X, "what curves are drawn over", "steps")
    add_argument(parser, "--smooth", "N", "each point is the mean of the last N evaluations", "1")
    add_argument(
        parser, "--group-by", "OPTION,...", "options that tell curves apart", "the whole configuration"
    )
    add_argument(parser, "--labels", "LABEL,...", "names of the curves, in their order", "what differs")


def add_aggregate(commands: Any) -> None:
    """``escalade aggregate``."""
    parser = add_command(
        commands,
        "aggregate",
        "RUN [RUN ...]",
        "print where the curves of plot end, for scripts, and draw them",
        _aggregate,
        more="A curve is the interquartile mean of the runs' evaluations, with a 95 % bootstrap interval.\n"
        "See 'escalade plot' for more choices of a picture, and 'escalade compare' for a table.",
        examples=["runs/*/* --output seeds.svg --over seconds"],
    )
    add_runs(parser)
    add_argument(parser, "--output", "FILE", _PICTURE, "aggregate.png")
    add_argument(parser, "--over", _X, "what curves are drawn over", "steps")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object a curve (default: lines of text)"
    )


def add_runs(parser: Parser) -> None:
    """The run folders that a command takes."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="folders of runs, or a folder that holds some")


def listed(text: str | None) -> list[str] | None:
    """What was typed with commas between."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _plot(parsed: argparse.Namespace) -> int:
    from escalade.api.plot import plot

    output, smooth = parsed.output or "curve.png", whole("smooth", parsed.smooth, 1) or 1
    groups, labels = listed(parsed.group_by), listed(parsed.labels)
    for note in plot(
        parsed.runs, output, x=parsed.x or "steps", smooth=smooth, group_by=groups, labels=labels
    ):
        say(note)
    say(output)
    return 0


def _aggregate(parsed: argparse.Namespace) -> int:
    from escalade.api.aggregate import aggregate

    output = Path(parsed.output or "aggregate.png")
    groups = aggregate(parsed.runs, output, over=parsed.over or "steps")
    for group in groups:
        curve = group.curve
        last = {
            "return_iqm": float(curve.middle[-1]),
            "return_low": float(curve.low[-1]),
            "return_high": float(curve.high[-1]),
        }
        facts = {"env": group.env, "label": group.label, "runs": len(group.runs), "solved": group.solved}
        if parsed.json:
            say(json.dumps(facts | last))
            continue
        say(
            f"{group.env}: {group.label}: {number(last['return_iqm'])} ({number(last['return_low'])} to "
            f"{number(last['return_high'])}), {group.solved} of {len(group.runs)} runs solved"
        )
    if not parsed.json:
        say(str(output))
    return 0
