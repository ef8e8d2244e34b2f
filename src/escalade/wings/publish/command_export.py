"""The command that takes a policy elsewhere: ``export``."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from escalade.cli.arguments import add_argument, add_command
from escalade.cli.output import say
from escalade.cli.results import LATEST, policy_called


def add_export(commands: Any) -> None:
    """``escalade export``."""
    parser = add_command(
        commands,
        "export",
        "RUN",
        _export,
        more="Normaliser and action map are inside. Before the file is kept, 1,000 observations must\n"
        "give what the policy gives, to 1e-5.",
        examples=["runs/CartPole-v1/first --output agent.pt2"],
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run, a policy's file, or zoo:NAME")
    add_argument(
        parser, "--format", "{onnx,torchscript,torch-export}", "kind of file", "as FILE ends, or onnx"
    )
    add_argument(parser, "--output", "FILE", "the file", "in the run's folder")
    add_argument(parser, "--checkpoint", "best|latest|GENERATION", "whose policy", LATEST)
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: a line of text)")


def _export(parsed: argparse.Namespace) -> int:
    from escalade.wings.publish.export import export
    from escalade.wings.publish.graphs import OBSERVATIONS

    checkpoint = parsed.checkpoint or LATEST
    made = export(parsed.run, parsed.format, output=parsed.output, checkpoint=checkpoint)
    of = None if os.path.isfile(parsed.run) else checkpoint
    facts: dict[str, Any] = {
        "path": str(made.path),
        "checkpoint": of,
        "largest_difference": made.largest_difference,
        "observations": OBSERVATIONS,
    }
    if made.state is not None:
        facts["first_state"] = str(made.state)
    if parsed.json:
        say(json.dumps(facts))
        return 0
    apart = f"{made.largest_difference:.2g}"
    whose = "policy" if of is None else policy_called(of)
    say(f"{made.path}: differs from the {whose} by {apart} at most, on {OBSERVATIONS:,} observations")
    if made.state is not None:
        say(f"{made.state}: the state that an episode begins with")
    return 0
