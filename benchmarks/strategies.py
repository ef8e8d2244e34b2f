"""Every strategy on five control tasks, with one budget of steps and the settings that it has by default.

    python benchmarks/strategies.py [TASK ...] [--strategies NAME ...] [--seeds 1 2 3]

Adds a line to results/strategies.jsonl for each strategy, task and seed that is not there yet. Each run takes
one process, and ends when 100 fresh episodes of the centre reach the target, or after ``BUDGET`` env steps of
training: so nothing depends on the machine but the seconds. tables.py makes the table.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
from pathlib import Path
from typing import Any

import presets
import settings
from escalade.strategies.registry import STRATEGIES
from peers import tasks as peers

RESULTS = Path(__file__).parent / "results" / "strategies.jsonl"
BUDGET = 500_000
TASKS = ["CartPole-v1", "Acrobot-v1", "LunarLander-v3", "Swimmer-v5", "HalfCheetah-v5"]
Line = dict[str, Any]


def run(strategy: str, task: str, seed: int) -> Line:
    """One run from its start to its end; its line."""
    options = {"strategy": strategy, "target_return": peers.TASKS[task].target, "env_steps": BUDGET}
    found = settings.run(peers.TASKS[task].env, options, seed)
    return {"strategy": strategy, "task": task} | {
        key: value for key, value in found.items() if key not in ("env", "options")
    }


def table(lines: list[Line]) -> str:
    """A row for each strategy: the runs that solved each task, and their median of steps or the return."""
    rows = []
    for strategy in STRATEGIES:
        runs = [
            [line for line in lines if (line["strategy"], line["task"]) == (strategy, task)] for task in TASKS
        ]
        solved = sum(line["solved"] for found in runs for line in found)
        rows.append([f"`{strategy}`", *map(_cell, runs), f"{solved} of {sum(map(len, runs))}"])
    return presets.markdown(["strategy", *TASKS, "solved"], rows)


def _cell(runs: list[Line]) -> str:
    if not runs:
        return "not run"
    steps = [line["env_steps"] if line["solved"] else math.inf for line in runs]
    solved = f"{sum(line['solved'] for line in runs)} of {len(runs)}: "
    if (median := statistics.median(steps)) < math.inf:
        return f"{solved}{median / 1000:,.0f} k"
    return f"{solved}return {statistics.median(line['eval_return_mean'] for line in runs):.4g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=TASKS, metavar="TASK")
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES))
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    arguments = parser.parse_args()
    for task, seed, strategy in itertools.product(arguments.tasks, arguments.seeds, arguments.strategies):
        there = {(line["strategy"], line["task"], line["seed"]) for line in presets.lines_of(RESULTS)}
        if (strategy, task, seed) in there:
            continue
        line = run(strategy, task, seed)
        if line["stop_reason"] == "interrupted":
            return
        with RESULTS.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        print(line, flush=True)


if __name__ == "__main__":
    main()
