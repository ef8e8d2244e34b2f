"""Escalade's command with its preset, reported in the format of the other programs.

    python benchmarks/peers/escalade_train.py TASK [--seed 1] [--seconds 600]

Evaluations are the run's own: rows of progress.csv, stamped as they appear.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from judge import arguments


def rows(file: Path) -> list[dict[str, str]]:
    """Return the complete rows of progress.csv."""
    if not file.exists():
        return []
    text = file.read_text()
    return list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))


def main() -> None:
    args = arguments()
    task, born, told = args.task, psutil.Process().create_time(), 0

    def write(**what: Any) -> None:
        print(json.dumps({"seconds": round(seconds, 2), **what}), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        words = [sys.executable, "-m", "escalade", "train", task.env, "--seed", args.seed, "--workers", 2]
        words += ["--seconds", args.seconds, "--run-dir", run]
        if not task.unseen:  # those have no preset, either
            words += ["--target-return", task.target]
        if task.kwargs:
            words += ["--env-kwargs", json.dumps(task.kwargs)]
        process = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL)
        ended = False
        while not ended:  # once more after the end: the last row comes right before the summary
            ended = process.poll() is not None or (run / "summary.json").exists()
            seconds = time.time() - born
            for row in rows(run / "progress.csv")[told:]:
                told += 1
                if row["eval_return_mean"]:
                    steps = int(row["env_steps"]) + int(row["eval_steps"])
                    write(env_steps=steps, mean=float(row["eval_return_mean"]))
            time.sleep(0.02)
        process.wait()
        found = json.loads((run / "summary.json").read_text())
        steps = found["env_steps"] + found["eval_steps"]
        write(env_steps=steps, mean=found["eval_return_mean"])  # of the confirming episodes, once solved
        write(solved=bool(found["solved"]))


if __name__ == "__main__":
    main()
