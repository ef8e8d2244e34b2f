"""Escalade beside Stable-Baselines3's PPO, sb3-contrib's ARS and EvoTorch's PGPE, on the same two cores.

    python benchmarks/peers/compare.py --peers PEERS/bin/python [--tasks TASK ...] [--seconds 600]

PEERS is an environment that was made from requirements.txt. One program runs at a time, in turns, until it
solves the task (100 fresh episodes) or the seconds are over. Appends a line of JSON for each run to
../results/peers.jsonl; runs that are there already are not repeated. ../tables.py makes tables and picture.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tasks import HERE, RESULTS, TASKS

PROGRAMS = {"escalade": "escalade_train.py", "ppo": "ppo.py", "pgpe": "pgpe.py", "ars": "ars.py"}
GRACE = 120.0  # seconds beyond the limit before a program that does not end is ended
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONWARNINGS": "ignore"}


def done(file: Path) -> set[tuple[str, str, int]]:
    """What the file holds already."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {(run["task"], run["program"], run["seed"]) for run in map(json.loads, lines)}


def run(python: str, program: str, task: str, seed: int, seconds: float) -> dict[str, Any]:
    """One program's evaluations, and whether and when it solved the task."""
    words = [python, HERE / PROGRAMS[program], task, "--seed", seed, "--seconds", seconds]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    env = os.environ | QUIET
    process = subprocess.Popen(list(map(str, words)), text=True, env=env, start_new_session=True, **pipes)
    try:
        out, err = process.communicate(timeout=seconds + GRACE)
        failed = process.returncode != 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # what it started holds its pipes open
        out, err = process.communicate()
        failed = False
    except BaseException:  # Ctrl-C does not reach it by itself
        os.killpg(process.pid, signal.SIGKILL)
        raise
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    solved = next((line["seconds"] for line in lines if line.get("solved")), None)
    if failed or not lines:  # no result, rather than one that looks unsolved
        raise SystemExit(f"{program} on {task} failed: {err.strip()[-2000:] or process.returncode}")
    curve = [[line["seconds"], line["env_steps"], line["mean"]] for line in lines if "mean" in line]
    return {"solved": solved, "limit": seconds, "curve": curve}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peers", required=True, help="Python of the environment with the peers")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--programs", nargs="+", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    for task, seed, program in itertools.product(given.tasks, given.seeds, given.programs):
        if (task, program, seed) in done(given.output):
            continue
        python = sys.executable if program == "escalade" else given.peers
        found = run(python, program, task, seed, given.seconds)
        what = {"task": task, "program": program, "seed": seed, "date": str(datetime.date.today())}
        with given.output.open("a") as file:
            file.write(json.dumps(what | found) + "\n")
        word = "not solved" if found["solved"] is None else f"solved in {found['solved']} s"
        print(f"{task}, {program}, seed {seed}: {word}", flush=True)


if __name__ == "__main__":
    main()
