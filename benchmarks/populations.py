"""Fixed and growing populations: returns after a short time, and steps until solved.

    taskset -c 0 python benchmarks/populations.py returns [TASK ...] [--candidates NAME ...] [--seeds 1 2 3 4]
    taskset -c 0 python benchmarks/populations.py steps [TASK ...] [--candidates NAME ...] [--seeds 1 2 3 4]

All other options are those without a preset. ``returns`` runs each of default_returns.py's tasks for 30
seconds of this one process, and then 30 fresh episodes; ``steps`` runs tasks of peers/tasks.toml until they
are solved, 150 seconds at most. Adds a line to results/populations.jsonl for each run that is not there yet;
tables.py makes the tables.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from functools import partial
from pathlib import Path
from typing import Any

import default_returns
import defaults
import presets
import settings
from escalade.support.own_process import claim

RESULTS = Path(__file__).parent / "results" / "populations.jsonl"
SECONDS = {"returns": 30.0, "steps": 150.0}
_GROWS = {"population": "linear:16:64:64"}
CANDIDATES: dict[str, dict[str, Any]] = {
    "64": {"population": 64},
    "32": {"population": 32},
    "16": {"population": 16},
    "16 to 64": _GROWS,
    "16 to 64, step 0.05 to 0.1": _GROWS | {"lr": "linear:0.05:0.1:64"},
    "16 to 64, step 0.07 to 0.1": _GROWS | {"lr": "linear:0.07:0.1:64"},
}
"""Unless stated otherwise, the step is 0.1. Populations grow over 64 generations."""
TASKS = {
    "returns": default_returns.TASKS,
    "steps": (
        "CartPole-v1",
        "Acrobot-v1",
        "InvertedPendulum-v5",
        "LunarLander-v3",
        "Swimmer-v5",
        "HalfCheetah-v5",
    ),
}
Line = dict[str, Any]


def read(what: str) -> list[Line]:
    """Return all runs of one kind, ``returns`` or ``steps``."""
    return [line for line in presets.lines_of(RESULTS) if line["what"] == what]


def run(what: str, candidate: str, task: str, seed: int) -> Line:
    """Run once and return the result line."""
    options, seconds = CANDIDATES[candidate], SECONDS[what]
    line = {"what": what, "candidate": candidate, "task": task, "seed": seed, "limit": seconds}
    if what == "steps":
        options = options | {"seconds": seconds, "target_return": defaults.TASKS[task].target}
        found = settings.run(defaults.TASKS[task].env, options, seed)
        kept = ("solved", "env_steps", "generations", "eval_return_mean", "stop_reason")
        return line | {name: found[name] for name in kept}
    found = default_returns.reached(options, task, seed, seconds)
    mean = round(found.pop("mean"), 3)
    return line | found | {"eval_return_mean": mean}


def table(what: str, lines: list[Line]) -> str:
    """Return a row per task and a column per candidate: mean returns, or the steps of each seed."""
    rows = []
    names = [name for name in CANDIDATES if any(line["candidate"] == name for line in lines)]
    for task in TASKS[what]:
        cells = []
        for name in names:
            runs = [line for line in lines if (line["candidate"], line["task"]) == (name, task)]
            cells.append(_cell(what, sorted(runs, key=lambda line: int(line["seed"]))) if runs else "-")
        rows.append([task, *cells])
    return presets.markdown(["task", *names], rows)


def _cell(what: str, runs: list[Line]) -> str:
    if what == "returns":
        return f"{statistics.mean(line['eval_return_mean'] for line in runs):.4g} ({len(runs)})"
    return ", ".join(
        f"{line['env_steps'] / 1000:,.0f}" if line["solved"] else f"- ({line['eval_return_mean']:.4g})"
        for line in runs
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=SECONDS)
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    parser.add_argument("--candidates", nargs="*", default=list(CANDIDATES))
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3, 4])
    given = parser.parse_args()
    claim()  # of EnvPool's families, only the one that is needed is imported
    each = itertools.product(given.seeds, given.tasks or TASKS[given.what], given.candidates)
    wanted = ((candidate, task, seed) for seed, task, candidate in each)
    defaults.measure(wanted, RESULTS, partial(read, given.what), partial(run, given.what))


if __name__ == "__main__":
    main()
