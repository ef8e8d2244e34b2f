"""The last lines of a run: its result, the reason it ended, and its folder."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from escalade.support.numbers import counted, number
from escalade.training.results import updates_of


def closing_lines(summary: Mapping[str, Any], folder: Path | None, *, again: bool = False) -> Iterator[str]:
    """Yield lines that describe how a run ended.

    Args:
        summary: Contents of the run's summary.json.
        folder: The run's folder, if it has one.
        again: True if the run had reached a limit or its target before it was resumed.
    """
    mean, std, steps = (summary[name] for name in ("eval_return_mean", "eval_return_std", "env_steps"))
    if mean is not None:
        spent = "" if steps is None else f"{steps:,} steps, "
        of = f" of center {summary['eval_center']}" if "eval_center" in summary else ""
        if late := summary.get("updates_since_evaluation"):
            last = updates_of(summary) or late
            of += f" (center of generation {last - late} of {last})"
        over = counted(summary["eval_episodes"], "call" if "module" in summary else "episode")
        yield f"return {number(mean)} ± {number(std)} over {over}{of}, {spent}{summary['seconds']:.1f} s"
    yield _reason(summary, folder, again)
    if folder is not None:
        yield f"run folder: {folder}"


def _reason(summary: Mapping[str, Any], folder: Path | None, again: bool) -> str:
    reason, what = summary["stop_reason"], summary.get("env") or summary.get("module")
    words = {
        "callback": "stopped by a callback",
        "stopped": "stopped on request",
        "interrupted": "interrupted"
        if folder is None
        else f"interrupted; resume with: {_resume_command(summary, folder)}",
    }
    if reason == "solved":
        solved = f"solved: {what} reached its target of {summary['target_return']}"
        return f"already {solved}; set a harder `target_return` to continue" if again else solved
    done = f"stopped: `{reason}` was reached"
    return words.get(reason, f"{done} before; set a higher one to continue" if again else done)


def _resume_command(summary: Mapping[str, Any], folder: Path) -> str:
    if summary.get("network") == "own":
        return f"escalade.resume({str(folder)!r}, network=...), in Python"
    if str(summary.get("env")).startswith("__main__:"):
        return f"escalade.resume({str(folder)!r}), in the script that started the run"
    return resuming(folder, evolved="module" in summary)


def resuming(folder: Path, evolved: bool) -> str:
    """Return the command that resumes a run, or for a run of :func:`escalade.evolve` the call."""
    return "the same evolve with resume=True" if evolved else f"escalade resume {shlex.quote(str(folder))}"
