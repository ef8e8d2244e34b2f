"""Settings that could be the defaults, on every task of the comparison without a preset; and which to choose.

    python benchmarks/defaults.py [TASK ...] [--seeds 1] [--seconds 150]

Adds a line to results/defaults.jsonl for each candidate, task and seed that is not there yet. Each run takes
one process, so the seconds are worth half as many with two workers. tables.py makes the table, with what
would be chosen for each task from all the others.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tomllib
from pathlib import Path
from typing import Any

import settings

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "defaults.jsonl"
TASKS: dict[str, Any] = {
    name: task
    for name, task in tomllib.loads((HERE / "peers" / "tasks.toml").read_text()).items()
    if not task.get("hard")
}
_ALL, _HALF = {"top_directions": 32}, {"top_directions": 16}
_LINEAR = {"strategy": "ars", "policy": "linear", "population": 64, "sigma": 0.1, "lr": 0.1}
_NETWORK = {"policy": "mlp", "hidden": [16], "population": 64, "sigma": 0.1, "lr": 0.1}
CANDIDATES: dict[str, dict[str, Any]] = {
    "linear ARS": _LINEAR | _ALL,
    "linear ARS, best half": _LINEAR | _HALF,
    "linear ARS, half the noise and step": _LINEAR | _ALL | {"sigma": 0.05, "lr": 0.05},
    "ARS, 16 hidden units": {"strategy": "ars"} | _NETWORK | _ALL,
    "OpenAI-ES, 16 hidden units": {"strategy": "openai-es", **_NETWORK},
    "OpenAI-ES, 64-64 (until 0.1)": {
        "strategy": "openai-es",
        "policy": "mlp",
        "hidden": [64, 64],
        "population": 64,
        "sigma": 0.05,
        "lr": 0.01,
    },
}
Line = dict[str, Any]


def read() -> list[Line]:
    """All runs of the candidates as they are now."""
    text = RESULTS.read_text() if RESULTS.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if CANDIDATES.get(line["candidate"]) == line["candidate_options"]]


def run(candidate: str, task: str, seed: int, seconds: float) -> Line:
    """One run from its start to its end; its line."""
    options, row = CANDIDATES[candidate], TASKS[task]
    given = options | {"target_return": row["target"], "seconds": seconds}
    if "kwargs" in row:
        given["env_kwargs"] = row["kwargs"]
    found = settings.run(row.get("env", task), given, seed)
    what = {"candidate": candidate, "candidate_options": options, "task": task, "limit": seconds}
    return what | {key: value for key, value in found.items() if key not in ("env", "options")}


def chosen(lines: list[Line], tasks: list[str]) -> str:
    """The candidate that solved most of ``tasks``; of several, that with fewest steps where all did."""
    solved = {name: _solved(lines, name, tasks) for name in CANDIDATES}
    most = max(map(len, solved.values()))
    best = [name for name in CANDIDATES if len(solved[name]) == most]
    shared = set.intersection(*(set(solved[name]) for name in best))
    return min(best, key=lambda name: sum(math.log(solved[name][task]) for task in sorted(shared)))


def _solved(lines: list[Line], name: str, tasks: list[str]) -> dict[str, float]:
    """The tasks that more than half the seeds of a candidate solved, and the median of its steps."""
    found = {}
    for task in tasks:
        runs = _runs(lines, name, task)
        steps = [line["env_steps"] if line["solved"] else math.inf for line in runs]
        if steps and statistics.median(steps) < math.inf:
            found[task] = statistics.median(steps)
    return found


def _runs(lines: list[Line], name: str, task: str) -> list[Line]:
    return [line for line in lines if (line["candidate"], line["task"]) == (name, task)]


def table(lines: list[Line]) -> str:
    """A row for each task: steps to solved of each candidate, and what the other tasks would choose."""
    rows = [["task", "target", *CANDIDATES, "chosen by the others"], ["---"] * (len(CANDIDATES) + 3)]
    done = [task for task in TASKS if all(_runs(lines, name, task) for name in CANDIDATES)]
    for task in done:
        cells = [_cell(_runs(lines, name, task)) for name in CANDIDATES]
        others = chosen(lines, [other for other in done if other != task])
        rows.append([task, f"{TASKS[task]['target']:g}", *cells, others])
    totals = [str(len(_solved(lines, name, done))) for name in CANDIDATES]
    unseen = [row[2:][list(CANDIDATES).index(row[-1])] for row in rows[2:]]
    right = sum(not cell.startswith("-") for cell in unseen)
    rows.append(["solved", "", *totals, str(right)])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _cell(runs: list[Line]) -> str:
    """The median of steps to solved, or the return where it was not solved."""
    steps = [line["env_steps"] if line["solved"] else math.inf for line in runs]
    if (median := statistics.median(steps)) < math.inf:
        return f"{median:,.0f}"
    return f"- ({statistics.median(line['eval_return_mean'] for line in runs):.4g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=list(TASKS), metavar="TASK")
    parser.add_argument("--candidates", nargs="*", default=list(CANDIDATES))
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--seconds", type=float, default=150.0)
    arguments = parser.parse_args()
    for task in arguments.tasks:
        for candidate in arguments.candidates:
            for seed in arguments.seeds:
                key = (candidate, task, seed)
                if key in {(line["candidate"], line["task"], line["seed"]) for line in read()}:
                    continue
                line = run(candidate, task, seed, arguments.seconds)
                if line["stop_reason"] == "interrupted":
                    return
                with RESULTS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                print(*key, line["solved"], line["env_steps"], line["eval_return_mean"], flush=True)


if __name__ == "__main__":
    main()
