"""Escalade compared with PPO (SB3), ARS (sb3-contrib), PGPE (EvoTorch) and SAC (RLtools) on two cores.

    python benchmarks/peers/compare.py --peers PEERS/bin/python [--tasks TASK ...] [--seconds 600]
    python benchmarks/peers/compare.py --peers PEERS/bin/python --unseen --cores 0 --seconds 60

PEERS is an environment installed from requirements.txt. One program runs at a time, in turns, until it
solves the task (100 fresh episodes) or reaches the time limit. Appends a line of JSON for each run to
../results/peers.jsonl; existing runs are not repeated. ../tables.py makes tables and picture.
With ``--unseen`` the tasks are those of unseen.toml, without targets, the programs are Escalade without a
preset, PPO, SBX's SAC, ARS and actions by chance, and the file is ../results/unseen.jsonl. ``--cores`` holds
a program to some of the machine's, so that two commands may run side by side.
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

from tasks import EVERY, HERE, RESULTS, TASKS, UNSEEN, UNSEEN_RESULTS

PROGRAMS = ("escalade", "ppo", "pgpe", "ars", "rltools_sac")
UNSEEN_PROGRAMS = ("escalade", "ppo", "sac", "ars", "chance")
GRACE = 120.0  # seconds beyond the limit before a program that does not end is ended
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONWARNINGS": "ignore"}


def done(file: Path) -> set[tuple[str, str, int]]:
    """Return the runs in the file."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {(run["task"], run["program"], run["seed"]) for run in map(json.loads, lines)}


def run(words: list[Any], seconds: float) -> dict[str, Any]:
    """Run a program. Return its evaluations, and whether and when it solved the task."""
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
        raise SystemExit(f"{' '.join(map(str, words))} failed: {err.strip()[-2000:] or process.returncode}")
    curve = [[line["seconds"], line["env_steps"], line["mean"]] for line in lines if "mean" in line]
    return {"solved": solved, "limit": seconds, "curve": curve}


def wanted(given: argparse.Namespace) -> list[tuple[str, int, str]]:
    """Return the tasks, seeds and programs without a run, in turns."""
    programs, tasks = (UNSEEN_PROGRAMS, UNSEEN) if given.unseen else (PROGRAMS, TASKS)
    each = itertools.product(given.tasks or tasks, given.seeds, dict.fromkeys(given.programs or programs))
    made = done(given.output)
    return [
        (task, seed, program)
        for task, seed, program in each
        if (task, program, seed) not in made and _has(program, task)
    ]


def _has(program: str, task: str) -> bool:
    """Return whether the program can train on the task."""
    if program == "rltools_sac":
        return task == "Pendulum-v1"
    return not (program == "sac" and EVERY[task].discrete)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peers", required=True, help="Python of the environment with the peers")
    parser.add_argument("--unseen", action="store_true", help="the tasks of unseen.toml, for a time")
    parser.add_argument("--tasks", nargs="+", choices=EVERY)
    parser.add_argument("--programs", nargs="+", choices={*PROGRAMS, *UNSEEN_PROGRAMS})
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--cores", help="as for taskset, such as 0 or 0-1 (default: all)")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    given.output = given.output or (UNSEEN_RESULTS if given.unseen else RESULTS)
    for task, seed, program in wanted(given):
        own = program == "escalade"
        words = ["taskset", "-c", given.cores] if given.cores else []
        words += [sys.executable if own else given.peers, HERE / f"{'escalade_train' if own else program}.py"]
        found = run([*words, task, "--seed", seed, "--seconds", given.seconds], given.seconds)
        what = {"task": task, "program": program, "seed": seed, "date": str(datetime.date.today())}
        what |= {"cores": given.cores} if given.cores else {}
        with given.output.open("a") as file:
            file.write(json.dumps(what | found) + "\n")
        last = found["curve"][-1][-1] if found["curve"] else "nothing"
        word = f"at {last}" if found["solved"] is None else f"solved in {found['solved']} s"
        print(f"{task}, {program}, seed {seed}: {word}", flush=True)


if __name__ == "__main__":
    main()
