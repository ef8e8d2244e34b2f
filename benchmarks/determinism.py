"""Check that runs with the same seed are bit-identical under kills, resumes and other numbers of workers.

    python benchmarks/determinism.py [ENV ...] [--perturbation low-rank:1]

For each environment and backend, one run in a single process is the reference. Then, through the
real command: other numbers of workers; the run killed with SIGKILL at 20 random moments and
resumed each time; a run whose workers are killed with SIGKILL again and again. All must end with
the same ``params_sha256``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

ENVIRONMENTS = ["CartPole-v1", "LunarLander-v3", "HalfCheetah-v5"]
GENERATIONS = 40
KILLS = 20
SETTINGS = ["--preset", "none", "--population", "32", "--sigma", "0.1", "--lr", "0.05", "--seed", "7"]
SETTINGS += ["--strategy", "openai-es", "--hidden", "64,64"]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "escalade", *words]


def train(env: str, backend: str, folder: Path, *more: str) -> list[str]:
    budget = ["--generations", str(GENERATIONS), "--run-dir", str(folder)]
    return command("train", env, "--backend", backend, *SETTINGS, *budget, *more)


def summary(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "summary.json").read_text()))


def digest(folder: Path) -> str:
    return str(summary(folder)["params_sha256"])


def run(words: list[str]) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def generations_done(folder: Path) -> int:
    progress = folder / "progress.csv"
    return progress.read_bytes().count(b"\n") - 1 if progress.exists() else 0


def killed(env: str, backend: str, folder: Path, seconds: float) -> int:
    """Kill the run at random moments and resume it each time.

    Return the number of kills. ``seconds`` is the time of the undisturbed run, from its first generation to
    its last.
    """
    chance = random.Random(1)
    words = train(env, backend, folder)
    for kills in range(KILLS):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        words = command("resume", str(folder))
        started = folder / "config.toml"
        while not started.exists() and process.poll() is None:
            time.sleep(0.001)
        if chance.random() < 0.3:  # while Python starts, mostly
            time.sleep(chance.uniform(0, 1.5))
        else:  # up to two generations later
            last = generations_done(folder) + chance.choice((0, 1))
            while generations_done(folder) < last and process.poll() is None:
                time.sleep(0.001)
            time.sleep(chance.uniform(0, seconds / GENERATIONS))
        if process.poll() is not None:
            return kills
        process.send_signal(signal.SIGKILL)
        process.wait()
    run(words)
    return KILLS


def kill_a_worker(watched: psutil.Process, chance: random.Random) -> bool:
    """Kill a random worker, a child of the run's helpers. Return whether there was one."""
    try:
        servers = [child for child in watched.children() if child.children()]
        workers = [worker for server in servers for worker in server.children()]
        if workers:
            os.kill(chance.choice(workers).pid, signal.SIGKILL)
        return bool(workers)
    except (psutil.NoSuchProcess, ProcessLookupError):
        return False


def workers_killed(env: str, backend: str, folder: Path, seconds: float) -> int:
    """Kill random workers during the run.

    Return the number killed. ``seconds`` is the time of the undisturbed run. A worker is killed about once a
    generation, and at most three times a second: a run stops if no worker can finish anything.
    """
    chance, deaths = random.Random(2), 0
    between = max(0.35, seconds / GENERATIONS)
    process = subprocess.Popen(train(env, backend, folder), stdout=subprocess.DEVNULL)
    watched = psutil.Process(process.pid)
    done = threading.Event()
    while process.poll() is None and not done.wait(chance.uniform(0.3, 1.7) * between):
        if (folder / "progress.csv").exists():
            deaths += kill_a_worker(watched, chance)
    if process.returncode != 0:
        raise SystemExit(f"the run failed with exit code {process.returncode}")
    return deaths


def check(env: str, backend: str) -> bool:
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        run(train(env, backend, base / "w0", "--workers", "0"))
        found = {"workers 0": digest(base / "w0")}
        for count in (1, 2, 3):
            run(train(env, backend, base / f"w{count}", "--workers", str(count)))
            found[f"workers {count}"] = digest(base / f"w{count}")
        seconds = summary(base / "w2")["seconds"]
        kills = killed(env, backend, base / "killed", seconds)
        found[f"SIGKILL and resume, {kills} times"] = digest(base / "killed")
        deaths = workers_killed(env, backend, base / "deaths", seconds)
        found[f"{deaths} workers killed"] = digest(base / "deaths")
    reference = found["workers 0"]
    for what, sha in found.items():
        print(
            f"| {env} | {backend} | {what} | {sha[:16]} | {'same' if sha == reference else 'DIFFERENT'} |",
            flush=True,
        )
    return len(set(found.values())) == 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environments", nargs="*", default=ENVIRONMENTS)
    parser.add_argument("--perturbation", default="full")
    parser.add_argument("--backends", nargs="*", default=["gymnasium", "envpool"])
    arguments = parser.parse_args()
    SETTINGS.extend(["--perturbation", arguments.perturbation])
    print("| environment | backend | run | params_sha256 | |\n| --- | --- | --- | --- | --- |")
    good = [check(env, backend) for env in arguments.environments for backend in arguments.backends]
    raise SystemExit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
