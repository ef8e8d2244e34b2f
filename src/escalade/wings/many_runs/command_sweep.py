"""The command that searches for options: ``sweep``."""

from __future__ import annotations

import argparse
from typing import Any

from escalade.cli.arguments import add_argument, add_command, whole
from escalade.support.output import say


def add_sweep(commands: Any) -> None:
    """``escalade sweep``."""
    parser = add_command(
        commands,
        "sweep",
        "FILE.toml",
        _sweep,
        more="FILE.toml names the trials, and in the tables [options] what they share, in [space] what is\n"
        "searched. The same command goes on with what is missing. See the page 'Many runs' in the docs.",
        examples=["lunar.toml --jobs 2", "lunar.toml --trials 100 --run-dir runs/lunar"],
    )
    parser.add_argument("file", metavar="FILE.toml", help="what is searched, and how")
    add_argument(parser, "--jobs", "N", "trials that run at the same time", "1")
    add_argument(parser, "--trials", "N", "how many there are to be", "as the file says")
    add_argument(parser, "--run-dir", "FOLDER", "the sweep's folder", "runs/sweep-NAME, of the file's name")


def _sweep(parsed: argparse.Namespace) -> int:
    jobs, trials = whole("jobs", parsed.jobs) or 1, whole("trials", parsed.trials)
    from escalade.wings.many_runs.sweep import sweep

    sweep(parsed.file, run_dir=parsed.run_dir, jobs=jobs, trials=trials, say=say)
    return 0
