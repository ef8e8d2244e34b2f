"""The command that tries an environment: ``check``."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from typing import Any

from escalade.cli.arguments import add_command, add_environment, add_options, options_typed, with_flags
from escalade.config.environment import EnvironmentOptions
from escalade.config.options import Config
from escalade.support.numbers import counted
from escalade.support.output import say

_OF_TRAINING = ("env", "seed", "cutoff", "reward")
_OPTIONS = [one.name for one in fields(EnvironmentOptions) if one.name not in _OF_TRAINING]


def add_check(commands: Any) -> None:
    """``escalade check``."""
    parser = add_command(
        commands,
        "check",
        "ENV",
        _check,
        more="Exit code 0: nothing failed (warnings do not count). 1: something did.",
        examples=["CartPole-v1", "my_package.my_module:MyEnv-v0 --env-kwargs '{\"size\": 3}' --json"],
    )
    add_environment(parser)
    add_options(parser, _OPTIONS)
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: lines of text)")


def _check(parsed: argparse.Namespace) -> int:
    given = options_typed(parsed, but=["env"])
    Config(env=parsed.env, **given)  # checks the values
    from escalade.api.check import check

    report = check(parsed.env, **given)
    if parsed.json:
        say(json.dumps(report.as_dict()))
        return 0 if report.ok else 1
    flags = parsed.parser.flags()
    for finding in report.findings:
        say(f"{finding.status:<8} {finding.name}: {with_flags(finding.detail, flags)}")
    warned = sum(finding.status == "warning" for finding in report.findings)
    verdict = "good" if report.ok else "failed"
    say(f"{parsed.env}: {verdict}" + (f", {counted(warned, 'warning')}" if warned else ""))
    return 0 if report.ok else 1
