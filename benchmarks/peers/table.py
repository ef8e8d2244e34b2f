"""The comparison's raw results as tables and as a picture; ../tables.py writes them into the pages."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from escalade.media.figure import GREY, fit_returns, style
from escalade.wings.analysis.bands import Curve, band
from peers.tasks import RESULTS, TASKS
from presets import lines_of, markdown

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

NAMES = {
    "escalade": "Escalade",
    "ppo": "PPO (SB3)",
    "pgpe": "PGPE (EvoTorch)",
    "ars": "ARS (SB3)",
    "rltools_sac": "SAC (RLtools)",
}
MINUTES = (1, 5, 20)

Run = dict[str, Any]
Runs = dict[tuple[str, str], list[Run]]


def results(file: Path = RESULTS) -> Runs:
    """Return the runs by task and program."""
    found: Runs = defaultdict(list)
    for run in lines_of(file):
        found[run["task"], run["program"]].append(run)
    return found


def _tasks(runs: Runs) -> list[str]:
    return [task for task in TASKS if any(key[0] == task for key in runs)]


def times(runs: Runs) -> str:
    """Return a table of seconds until solved, by task and program."""
    tasks = _tasks(runs)
    programs = that_ran(runs, tasks)
    rows = [[task, f"{TASKS[task].target:g}", *seconds(runs, task, programs)] for task in tasks]
    return markdown(["task", "target", *(NAMES[program] for program in programs)], rows)


def that_ran(runs: Runs, tasks: Sequence[str]) -> list[str]:
    """Return the programs with a run on one of ``tasks``: the columns of a table."""
    return [program for program in NAMES if any((task, program) in runs for task in tasks)]


def seconds(runs: Runs, task: str, programs: list[str]) -> list[str]:
    """Return each program's seconds until solved on ``task``."""
    return [_seconds(runs.get((task, program), [])) for program in programs]


def _seconds(runs: list[Run]) -> str:
    """Return the median, with unsolved runs as the slowest, and the number of solved runs.

    A single run is marked as one seed.
    """
    if not runs:
        return "-"
    solved = [run["solved"] for run in runs if run["solved"] is not None]
    median = statistics.median([*solved, *[float("inf")] * (len(runs) - len(solved))])
    shown = f"{median:.1f}" if median < float("inf") else f"> {max(run['limit'] for run in runs):.0f}"
    count = "one seed" if len(runs) == 1 else f"{len(solved)} of {len(runs)}"
    return f"{shown} ({count})"


def returns(runs: Runs) -> str:
    """Return a table of median returns after some minutes, by task and program."""
    rows = [
        [task, name, *(after(runs[task, program], 60.0 * minutes) for minutes in MINUTES)]
        for task in _tasks(runs)
        for program, name in NAMES.items()
        if (task, program) in runs
    ]
    return markdown(["task", "program", *(f"after {minutes} min" for minutes in MINUTES)], rows)


def after(runs: list[Run], seconds: float) -> str:
    """Return the last evaluation until then; solved runs keep their value, runs stopped before have none."""
    seen = [value for run in runs if (value := at(run, seconds)) is not None]
    return f"{statistics.median(seen):.4g}" if len(seen) == len(runs) else "-"


def at(run: Run, seconds: float) -> float | None:
    """Return one run's last evaluation until then."""
    seen = [mean for when, _, mean in run["curve"] if when <= seconds]
    there = run["solved"] is not None or run["limit"] >= seconds
    return seen[-1] if seen and there else None


def picture(runs: Runs, file: Path, metadata: dict[str, str]) -> None:
    """Draw return against seconds: a panel per task, a curve per program, a band if it ran more than once."""
    tasks = _tasks(runs)
    ran = that_ran(runs, tasks)
    shown = [(number, program) for number, program in enumerate(NAMES) if program in ran]
    columns = min(4, len(tasks))
    size = (3.4 * columns, 2.6 * -(-len(tasks) // columns) + 0.3)
    figure, axes = plt.subplots(
        -(-len(tasks) // columns), columns, figsize=size, squeeze=False, layout="constrained"
    )
    for axis, task in zip(axes.flat, tasks, strict=False):
        drawn = [_draw(axis, number, runs.get((task, program), [])) for number, program in shown]
        axis.axhline(TASKS[task].target, color=GREY, linestyle="--", linewidth=0.8)
        axis.set(title=task, xscale="log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
        fit_returns(axis, [curve for curves in drawn for curve in curves], [TASKS[task].target])
    for axis in axes.flat[len(tasks) :]:
        axis.remove()
    for number, program in shown:
        figure.axes[0].plot([], [], label=NAMES[program], **style(number))
    figure.legend(loc="outside upper center", ncols=len(shown), frameon=False)
    figure.supxlabel("seconds since the program was started", fontsize="medium")
    figure.supylabel("return", fontsize="medium")
    figure.savefig(file, dpi=100, metadata=metadata)
    plt.close(figure)


def _draw(axis: Any, number: int, runs: list[Run]) -> list[Any]:
    """Draw a program's runs on a task, and return the drawn curve."""
    runs = [run for run in runs if run["curve"]]
    curves = [
        Curve(*np.array(run["curve"], float)[:, [0, 2]].T, solved=run["solved"] is not None) for run in runs
    ]
    if len(curves) < 2:
        for curve in curves:
            axis.plot(curve.at, curve.returns, linewidth=1.4, **style(number))
        return [curve.returns for curve in curves]
    found = band(curves)
    axis.fill_between(found.at, found.low, found.high, color=style(number)["color"], alpha=0.15, linewidth=0)
    axis.plot(found.at, found.middle, linewidth=1.4, **style(number))
    return [found.middle]
