"""The table and the picture of the comparison, from its raw results.

    python benchmarks/peers/table.py

Reads results.jsonl; writes table.md and curves.png beside it.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from judge import HERE, task_named, task_names
from matplotlib.ticker import NullFormatter

NAMES = {"escalade": "Escalade", "ppo": "PPO (SB3)", "pgpe": "PGPE (EvoTorch)", "ars": "ARS (SB3)"}
COLOURS = dict(zip(NAMES, ("#0072b2", "#d55e00", "#009e73", "#cc79a7"), strict=True))
STYLES = dict(zip(NAMES, ("-", "--", "-.", ":"), strict=True))
MINUTES = (1, 5)

Runs = dict[tuple[str, str], list[dict[str, Any]]]


def results(file: Path) -> Runs:
    """Runs by task and program."""
    found: Runs = defaultdict(list)
    for line in file.read_text().splitlines():
        run = json.loads(line)
        found[run["task"], run["program"]].append(run)
    return found


def seconds(runs: list[dict[str, Any]]) -> str:
    """Median seconds to solved and how many solved; of unsolved runs, the limit counts."""
    solved = [run["solved"] for run in runs if run["solved"] is not None]
    median = statistics.median([*solved, *[float("inf")] * (len(runs) - len(solved))])
    shown = f"{median:.1f}" if median < float("inf") else f"> {max(run['limit'] for run in runs):.0f}"
    return f"{shown} ({len(solved)}/{len(runs)})"


def at(run: dict[str, Any], limit: float) -> float | None:
    """Mean return of the last evaluation before ``limit`` seconds."""
    seen = [mean for when, _, mean in run["curve"] if when <= limit]
    return seen[-1] if seen else None


def returns(runs: list[dict[str, Any]], limit: float) -> str:
    """Median over runs of the return after so many seconds."""
    seen = [value for run in runs if (value := at(run, limit)) is not None]
    return f"{statistics.median(seen):.4g}" if seen else "-"


def table(found: Runs) -> str:
    """The Markdown table."""
    tasks = [task for task in task_names() if any(key[0] == task for key in found)]
    lines = [
        f"| task | target | {' | '.join(NAMES.values())} |",
        "| --- | ---: " + "| --- " * len(NAMES) + "|",
    ]
    for task in tasks:
        cells = [seconds(found[task, program]) if (task, program) in found else "-" for program in NAMES]
        lines.append(f"| {task} | {task_named(task).target:g} | {' | '.join(cells)} |")
    for minutes in MINUTES:
        lines += ["", f"Median return after {minutes} min; of runs that were done before, the last one:", ""]
        lines += [f"| task | {' | '.join(NAMES.values())} |", "| --- " + "| --- " * len(NAMES) + "|"]
        for task in tasks:
            cells = [returns(found[task, program], 60.0 * minutes) for program in NAMES]
            lines.append(f"| {task} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def picture(found: Runs, file: Path) -> None:
    """Return against seconds, a panel a task, a line a run."""
    tasks = [task for task in task_names() if any(key[0] == task for key in found)]
    columns = min(4, len(tasks))
    rows = -(-len(tasks) // columns)
    size = (4 * columns, 3 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for axis, task in zip(axes.flat, tasks, strict=False):
        for program, style in STYLES.items():
            for run in found.get((task, program), []):
                times, _, means = zip(*run["curve"], strict=True)
                axis.plot(times, means, style, color=COLOURS[program], linewidth=1.2, alpha=0.8)
        axis.axhline(task_named(task).target, color="0.5", linewidth=0.8)
        axis.set(title=task, xscale="log", xlabel="seconds", ylabel="return")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
    for axis in axes.flat[len(tasks) :]:
        axis.remove()
    for program, name in NAMES.items():
        figure.axes[0].plot([], [], STYLES[program], color=COLOURS[program], label=name)
    figure.legend(loc="outside lower center", ncols=len(NAMES))
    figure.savefig(file, dpi=110)


def main() -> None:
    found = results(HERE / "results.jsonl")
    (HERE / "table.md").write_text(table(found))
    picture(found, HERE / "curves.png")


if __name__ == "__main__":
    main()
