"""Candidate defaults on every task of the comparison without a preset, and the choice among them.

    python benchmarks/defaults.py [TASK ...] [--seeds 1] [--seconds 150]
    python benchmarks/defaults.py [TASK ...] --command [--seconds 300]    # escalade train TASK --preset none

Adds a line to results/defaults.jsonl for each candidate, task and seed that is not there yet. Each run takes
one process, so two workers need half the seconds. With ``--command`` the real command runs with two workers
and the present defaults, and its lines go to results/untuned.jsonl. tables.py makes the tables.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import presets
import settings
from escalade.config.options import Config
from peers import tasks as peers

HERE = Path(__file__).parent
RESULTS, COMMANDED = HERE / "results" / "defaults.jsonl", HERE / "results" / "untuned.jsonl"
TASKS = {name: task for name, task in peers.TASKS.items() if not task.hard}
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


def current() -> dict[str, Any]:
    """Return the options that differ between candidates, with their values without a preset."""
    config = Config(env="any")
    names = ("strategy", "policy", "hidden", "population", "sigma", "lr")
    found: dict[str, Any] = json.loads(json.dumps({name: getattr(config, name) for name in names}))
    return found | {"top_directions": config.strategy_options.get("top_directions")}


def command(task: str, seed: int, seconds: float) -> Line:
    """Run ``escalade train TASK --preset none`` with two workers and return the result line."""
    row = TASKS[task]
    words = [row.env, "--preset", "none", "--seed", seed, "--workers", 2, "--seconds", seconds]
    words += ["--target-return", row.target, "--env-kwargs", json.dumps(row.kwargs)]
    spent, found = presets.timed(*words)
    kept = {key: found[key] for key in ("solved", "env_steps", "eval_steps", "eval_return_mean")}
    return {
        "task": task,
        "seed": seed,
        "limit": seconds,
        "seconds": round(spent, 2),
        "defaults": current(),
    } | kept


def commanded() -> list[Line]:
    """Return all runs of the command with the present defaults."""
    now = current()
    return [line for line in presets.lines_of(COMMANDED) if line["defaults"] == now]


def untuned(lines: list[Line]) -> str:
    """Return the table of the command's results on each task."""
    header = ["task", "target", "seed", "seconds until solved", "training steps", "return"]
    rows, order = [], list(TASKS)
    for line in sorted(lines, key=lambda line: (order.index(line["task"]), line["seed"])):
        seconds = f"{line['seconds']:.1f}" if line["solved"] else f"not in {line['limit']:.0f}"
        cells = [line["task"], f"{TASKS[line['task']].target:g}", str(line["seed"]), seconds]
        rows.append([*cells, f"{line['env_steps']:,}", f"{line['eval_return_mean']:.4g}"])
    return presets.markdown(header, rows)


def read() -> list[Line]:
    """Return all runs of the present candidates."""
    lines = presets.lines_of(RESULTS)
    return [line for line in lines if CANDIDATES.get(line["candidate"]) == line["candidate_options"]]


def run(candidate: str, task: str, seed: int, seconds: float) -> Line:
    """Run once and return the result line."""
    options, row = CANDIDATES[candidate], TASKS[task]
    given = options | {"target_return": row.target, "seconds": seconds}
    if row.kwargs:
        given["env_kwargs"] = row.kwargs
    found = settings.run(row.env, given, seed)
    what = {"candidate": candidate, "candidate_options": options, "task": task, "limit": seconds}
    return what | {key: value for key, value in found.items() if key not in ("env", "options")}


def chosen(lines: list[Line], tasks: list[str]) -> str:
    """Return the candidate that solved most of ``tasks``; ties are broken by steps on the shared ones."""
    solved = {name: _solved(lines, name, tasks) for name in CANDIDATES}
    most = max(map(len, solved.values()))
    best = [name for name in CANDIDATES if len(solved[name]) == most]
    shared = set.intersection(*(set(solved[name]) for name in best))
    return min(best, key=lambda name: sum(math.log(solved[name][task]) for task in sorted(shared)))


def _solved(lines: list[Line], name: str, tasks: list[str]) -> dict[str, float]:
    """Return the tasks solved by more than half the seeds of a candidate, with the median steps."""
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
    """Return a row per task: each candidate's steps until solved, and the choice of the other tasks."""
    rows, right = [], 0
    done = [task for task in TASKS if all(_runs(lines, name, task) for name in CANDIDATES)]
    for task in done:
        cells = [_cell(_runs(lines, name, task)) for name in CANDIDATES]
        others = chosen(lines, [other for other in done if other != task])
        rows.append([task, f"{TASKS[task].target:g}", *cells, others])
        right += task in _solved(lines, others, [task])
    totals = [str(len(_solved(lines, name, done))) for name in CANDIDATES]
    rows.append(["solved", "", *totals, str(right)])
    return presets.markdown(["task", "target", *CANDIDATES, "chosen by the others"], rows)


def _cell(runs: list[Line]) -> str:
    """Return the median steps until solved, or the return if it was not solved."""
    steps = [line["env_steps"] if line["solved"] else math.inf for line in runs]
    if (median := statistics.median(steps)) < math.inf:
        return f"{median:,.0f}"
    return f"- ({statistics.median(line['eval_return_mean'] for line in runs):.4g})"


def measure(
    wanted: Iterable[tuple[str, str, int]],
    file: Path,
    read: Callable[[], list[Line]],
    run: Callable[[str, str, int], Line],
) -> None:
    """Run each candidate, task and seed that has no line in ``file`` yet, until a run is interrupted."""
    for candidate, task, seed in wanted:
        if (candidate, task, seed) in {(line["candidate"], line["task"], line["seed"]) for line in read()}:
            continue
        line = run(candidate, task, seed)
        if line["stop_reason"] == "interrupted":
            return
        _append(file, line)


def _append(file: Path, line: Line) -> None:
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
    print({key: value for key, value in line.items() if not isinstance(value, dict)}, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=list(TASKS), metavar="TASK")
    parser.add_argument("--candidates", nargs="*", default=list(CANDIDATES))
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--seconds", type=float, help="150, with --command 300")
    parser.add_argument("--command", action="store_true", help="the real command with the defaults")
    arguments = parser.parse_args()
    if arguments.command:
        for task, seed in itertools.product(arguments.tasks, arguments.seeds):
            if (task, seed) not in {(line["task"], line["seed"]) for line in commanded()}:
                _append(COMMANDED, command(task, seed, arguments.seconds or 300.0))
        return
    each = itertools.product(arguments.tasks, arguments.candidates, arguments.seeds)
    wanted = ((candidate, task, seed) for task, candidate, seed in each)
    measure(wanted, RESULTS, read, partial(run, seconds=arguments.seconds or 150.0))


if __name__ == "__main__":
    main()
