"""The output of commands."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from escalade.config.commands import flag
from escalade.support.interrupts import INTERRUPTED
from escalade.support.numbers import counted, number
from escalade.support.output import say

__all__ = ["INTERRUPTED", "give_up_stdout", "say", "say_summary"]


def resuming(folder: Path, evolved: bool) -> str:
    """The words for going on with a run: the command, or for one of :func:`escalade.evolve` the call."""
    return "the same evolve with resume=True" if evolved else f"escalade resume {shlex.quote(str(folder))}"


def _going_on(summary: Mapping[str, Any], folder: Path) -> str:
    if summary.get("network") == "own":
        return f"escalade.resume({str(folder)!r}, network=...), in Python"
    if str(summary.get("env")).startswith("__main__:"):
        return f"escalade.resume({str(folder)!r}), in the script that it began in"
    return resuming(folder, evolved="module" in summary)


def say_summary(summary: Mapping[str, Any], folder: Path) -> None:
    """Print how a run ended, given what its summary.json holds."""
    mean, std, steps = (summary[name] for name in ("eval_return_mean", "eval_return_std", "env_steps"))
    if mean is not None:
        spent = "" if steps is None else f"{steps:,} steps, "
        of = f" of centre {summary['eval_center']}" if "eval_center" in summary else ""
        if updates := summary.get("updates_since_evaluation"):
            of += f", {counted(updates, 'update')} before the last"
        say(
            f"return {number(mean)} ± {number(std)} over {summary['eval_episodes']} episodes{of}, {spent}"
            f"{summary['seconds']:.1f} s"
        )
    reason = summary["stop_reason"]
    what = summary.get("env") or summary.get("module")
    words = {
        "solved": f"solved: {what} reached its target of {summary['target_return']}",
        "callback": "stopped by a callback",
        "stopped": "stopped as asked",
        "interrupted": f"interrupted; go on with: {_going_on(summary, folder)}",
    }
    say(words.get(reason, f"stopped: {flag(reason)} was reached"))
    say(f"run folder: {folder}")


def give_up_stdout() -> None:
    """Send what is still in standard output's buffer nowhere: at exit it would fail once more."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
