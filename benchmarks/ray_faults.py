"""A run on a cluster with killed and replaced nodes, compared with an undisturbed run.

    python benchmarks/ray_faults.py --seconds 1800 --seed 1 --driver-kills 5

Starts a Ray cluster of several nodes on this machine, trains on it from a process of its own, and every
few seconds kills a worker process, or a whole node (and adds another later), or the driver (and lets
``escalade resume`` continue). It then stops the run with Ctrl-C, runs as many generations undisturbed in one
process, and compares the two: the digest, and that progress.csv counts every generation and
every member once.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

VARIABLES = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
POPULATION = 16
OPTIONS = ["HalfCheetah-v5", "--preset", "none", "--backend", "gymnasium", "--population", str(POPULATION)]
OPTIONS += ["--max-episode-steps", "200", "--hidden", "8", "--eval-every", "10", "--eval-episodes", "2"]
ENDLESS = 10**9


class Faulty:
    """A cluster, a run on it, and a generator of faults."""

    def __init__(self, folder: Path, seed: int, nodes: int) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args=NODE | {"num_cpus": 0})
        self.nodes: list[Any] = []
        self.run = folder / "disturbed"
        self.log = folder / "disturbed.log"
        self.chance = random.Random(seed)
        self.faults: Counter[str] = Counter()
        self.driver: subprocess.Popen[bytes] | None = None
        self.wanted = nodes
        self.grow(nodes)

    def grow(self, number: int) -> None:
        while len(self.nodes) < number:
            self.nodes.append(self.cluster.add_node(wait=False, **NODE))

    def start_driver(self) -> None:
        what = ["resume", self.run] if (self.run / "config.toml").exists() else ["train", *OPTIONS]
        options = ["--engine", "ray", "--generations", ENDLESS]
        if what[0] == "train":
            options += ["--run-dir", self.run]
        with self.log.open("ab") as log:
            self.driver = subprocess.Popen(
                [sys.executable, "-m", "escalade", *map(str, [*what, *options])],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=os.environ | {"RAY_ADDRESS": self.cluster.address},
            )

    def workers(self) -> list[psutil.Process]:
        """Return the processes of our actors: children of a raylet of this cluster's session."""
        session, found = self.cluster.head_node.get_session_dir_path(), []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                raylet = process.parent() if process.name().startswith("ray::RayWorker") else None
                if raylet is not None and session in " ".join(raylet.cmdline()):
                    found.append(process)
        return found

    def kill_worker(self) -> None:
        workers = self.workers()
        if workers:
            with suppress(psutil.Error):
                self.chance.choice(workers).kill()
            self.faults["workers killed"] += 1

    def kill_node(self) -> None:
        if self.nodes:
            node = self.nodes.pop(self.chance.randrange(len(self.nodes)))
            self.cluster.remove_node(node, allow_graceful=False)
            self.faults["nodes killed"] += 1

    def add_node(self) -> None:
        if len(self.nodes) < self.wanted:
            self.grow(len(self.nodes) + 1)
            self.faults["nodes added"] += 1

    def kill_driver(self) -> None:
        assert self.driver is not None
        os.killpg(self.driver.pid, signal.SIGKILL)
        self.driver.wait()
        self.faults["drivers killed"] += 1
        self.start_driver()

    def generations(self) -> int:
        with suppress(OSError):
            return max(0, len((self.run / "progress.csv").read_bytes().splitlines()) - 1)
        return 0

    def disturb(self, seconds: float, driver_kills: int, pause: tuple[float, float]) -> None:
        """Cause faults for this many seconds."""
        began, kills = time.monotonic(), 0
        while (now := time.monotonic() - began) < seconds:
            assert self.driver is not None
            assert self.driver.poll() is None, self.log.read_text()
            time.sleep(self.chance.uniform(*pause))
            if kills < driver_kills and now > (kills + 0.5) * seconds / driver_kills and self.generations():
                kills += 1
                self.kill_driver()
            else:
                self.chance.choice([self.kill_worker, self.kill_node, self.add_node, self.add_node])()
        while kills < driver_kills:  # a slow machine: the last ones come late, and come
            self.await_generation(self.generations() + 1)
            kills += 1
            self.kill_driver()

    def await_generation(self, number: int, deadline: float = 120.0) -> None:
        self.grow(self.wanted)
        end = time.monotonic() + deadline
        while self.generations() < number:
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.1)

    def finish(self) -> None:
        """Run one more generation undisturbed, then send Ctrl-C."""
        self.await_generation(self.generations() + 1)
        assert self.driver is not None
        self.driver.send_signal(signal.SIGINT)
        code = self.driver.wait(60)
        assert code == 130, self.log.read_text()

    def close(self) -> None:
        if self.driver is not None and self.driver.poll() is None:
            os.killpg(self.driver.pid, signal.SIGKILL)
            self.driver.wait()
        self.cluster.shutdown()


def check(run: Path, folder: Path) -> dict[str, Any]:
    """Compare the run with an undisturbed one of as many generations. Raise if they differ."""
    summary = json.loads((run / "summary.json").read_text())
    generations = summary["generations"]
    with (run / "progress.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["generation"]) for row in rows] == list(range(1, generations + 1)), "a generation twice"
    assert [int(row["episodes"]) for row in rows] == [POPULATION * n for n in range(1, generations + 1)]
    plain = folder / "undisturbed"
    options = [*OPTIONS, "--workers", "0", "--generations", str(generations), "--run-dir", str(plain)]
    subprocess.run(
        [sys.executable, "-m", "escalade", "train", *options], check=True, stdout=subprocess.DEVNULL
    )
    expected = json.loads((plain / "summary.json").read_text())
    assert summary["params_sha256"] == expected["params_sha256"], (summary, expected)
    assert summary["env_steps"] == expected["env_steps"]
    return {"generations": generations, "params_sha256": summary["params_sha256"]}


def trial(
    folder: Path, seconds: float, seed: int, driver_kills: int, nodes: int, pause: tuple[float, float]
) -> dict[str, Any]:
    """Run once with faults, check the result, and return the counts of faults."""
    os.environ.update(VARIABLES)
    faulty = Faulty(folder, seed, nodes)
    try:
        faulty.start_driver()
        faulty.disturb(seconds, driver_kills, pause)
        faulty.finish()
    finally:
        faulty.close()
    return {"seed": seed, "faults": dict(faulty.faults)} | check(faulty.run, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--driver-kills", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--pause", type=float, nargs=2, default=(1.0, 6.0), help="seconds between faults")
    given = parser.parse_args()
    print(f"seed {given.seed}, {given.seconds:.0f} s, {given.driver_kills} driver kills", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        found = trial(
            Path(folder), given.seconds, given.seed, given.driver_kills, given.nodes, tuple(given.pause)
        )
    print(json.dumps(found, indent=2))
    print("the same digest as undisturbed; every generation and every member counted once")


if __name__ == "__main__":
    main()
