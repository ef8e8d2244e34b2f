"""The driver's cost and a cluster's efficiency, for 16 to 2,000 workers and up to 100,000 members.

    python benchmarks/scale.py
    python benchmarks/scale.py --workers 1440 --members 10000 --processes 1 32

Real parts: the generation loop, the strategy, the normalizer, the checkpoints and the Ray engine's
driver, on Humanoid-v5's spaces with about 170,000 parameters. The workers are simulated: a simulated cluster
returns each chunk after the time of its episodes (1,000 steps of 200 microseconds, give or
take 2 %), in simulated time: waiting is skipped, and the driver's own work counts for as long as it took
(so the machine should be idle).
To this it adds the other costs of the driver's machine: the calls of Ray (measured here first, with
real actors), and its network (the center to every node, the results back).
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from escalade.config.files import new_folder
from escalade.config.options import Config
from escalade.engines import EngineOptions
from escalade.engines.results import Results
from escalade.rollout.episodes import RecordType
from escalade.support.exact import one_thread
from escalade.training.policy_run import policy_spec
from escalade.training.run import Listeners, carry_out
from escalade.wings.cluster.ray.engine import RayEngine
from escalade.wings.cluster.ray.messages import Node, Ready, Reply

STEPS, STEP_SECONDS, JITTER = 1000, 200e-6, 0.02
OBSERVATIONS = 348
NODE_CORES = 32
LATENCY = 1e-3  # of a message, one way, with Ray's own handling at the far end
BANDWIDTH = 1.25e9  # bytes a second: a network card of 10 Gbit/s
SLOTS = 64
GENERATIONS = 3


class SimulatedCluster:
    """Workers that return results in simulated time; ``events`` is the queue that the engine listens to."""

    def __init__(self, workers: int, processes: int, call_seconds: float, reply_seconds: float) -> None:
        self.events = self
        self.processes = processes
        self.actors = workers // processes
        self.call_seconds, self.reply_seconds = call_seconds, reply_seconds
        self.skipped = 0.0  # simulated seconds that took no real ones
        self.simulated_calls = 0.0  # of them, the calls of Ray
        self.network_free = 0.0  # when the driver's network card is idle again
        self._due: list[tuple[float, int, Any]] = []
        self._count = 0
        self._busy: dict[int, float] = {}  # when a worker is free again
        self._chance = random.Random(1)
        chance, kinds = np.random.default_rng(1), RecordType(observation=OBSERVATIONS)
        self._rows = np.zeros(8192, kinds.observed)
        self._rows["return"] = self._rows["score"] = chance.standard_normal(8192)
        self._rows["length"] = STEPS
        self._rows["moments"] = np.square(chance.standard_normal(self._rows["moments"].shape))
        self._narrow = np.zeros(8192, kinds.plain)
        for name in kinds.plain.names or ():
            self._narrow[name] = self._rows[name]
        self._observed: set[int] = set()

    def now(self) -> float:
        return time.monotonic() + self.skipped

    def _spend(self, seconds: float) -> None:
        self.skipped += seconds
        self.simulated_calls += seconds

    def _later(self, when: float, event: Any) -> None:
        self._count += 1
        heapq.heappush(self._due, (when, self._count, event))

    def _transfer(self, size: float) -> float:
        """Return the time at which the bytes have passed the driver's network card."""
        self.network_free = max(self.network_free, self.now()) + size / BANDWIDTH
        return self.network_free

    # The cluster, as the engine sees it.

    def put(self, job: Any) -> Any:
        size = 4 * len(job.population.center) if job.population is not None else 0
        nodes = -(-self.actors * self.processes // NODE_CORES)
        self._arrives = self._transfer(size * nodes)
        self._observed = set(np.flatnonzero(job.observed(np.arange(job.items))).tolist())
        return job

    def start_worker(self, avoid: Sequence[str]) -> int:
        worker = len(self._busy) + 1
        self._busy[worker] = 0.0
        info = {"slots": SLOTS * self.processes, "refills": self.processes == 1}
        self._later(0.0, Ready(worker, "0", info))
        return worker

    def send(self, worker: int, chunk: int, number: int, job: Any, items: Sequence[int]) -> None:
        self._spend(self.call_seconds)
        begins = max(self.now() + LATENCY, self._arrives, self._busy[worker])
        rounds = -(-len(items) // self.processes)
        took = rounds * STEPS * STEP_SECONDS * self._chance.uniform(1 - JITTER, 1 + JITTER)
        self._busy[worker] = begins + took
        results = self._results(items)
        self._later(begins + took + LATENCY, Reply(worker, chunk, "0", results, took))

    def _results(self, items: Sequence[int]) -> Results:
        """Return made-up rollout results, in which some episodes report observation moments."""
        first = self._chance.randrange(len(self._rows) - len(items) + 1)
        told = [item for item in items if item in self._observed]
        rest = [item for item in items if item not in self._observed]
        middle, last = first + len(told), first + len(items)
        results = Results(len(items))
        for batch, rows in ((told, self._rows[first:middle]), (rest, self._narrow[middle:last])):
            if batch:
                results.put_many(batch, rows)
        return results

    def await_ready(self, worker: int) -> None:
        raise AssertionError("nothing is lost here")

    def end_worker(self, worker: int) -> None:
        raise AssertionError("nothing is lost here")

    def nodes(self) -> dict[str, Node]:
        return {"0": Node("simulated", self.actors)}

    def close(self) -> None:
        self._due.clear()

    # The queue of events.

    def get(self, timeout: float | None = None) -> Any:
        when, _, event = heapq.heappop(self._due)
        if isinstance(event, Reply):
            size = sum(rows.nbytes for _, rows in event.results.in_batches()) if event.results else 0
            when = max(when, self._transfer(size))
            self._spend(self.reply_seconds)
        self.skipped += max(0.0, when - self.now())
        return event

    def empty(self) -> bool:
        return not self._due or self._due[0][0] > self.now()


class Clock:
    """Notes when generations end, in real and in simulated time."""

    def __init__(self, cluster: SimulatedCluster, engine: RayEngine) -> None:
        self.cluster, self.times = cluster, []
        self.in_engine = 0.0
        run = engine.run

        def timed(job: Any, items: int) -> Any:
            began = time.monotonic()
            try:
                return run(job, items)
            finally:
                self.in_engine += time.monotonic() - began

        engine.run = timed  # type: ignore[method-assign]

    def generation(self, row: Any) -> None:
        cluster = self.cluster
        self.times.append((time.monotonic(), cluster.now(), self.in_engine, cluster.simulated_calls))

    def note(self, text: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def simulate(workers: int, members: int, processes: int, calls: tuple[float, float]) -> dict[str, float]:
    """Return medians over generations of a run, with ``processes`` workers in each actor."""
    config = Config(
        env="Humanoid-v5", engine="ray", population=members, hidden=(268, 268),
        strategy="openai-es", backend="gymnasium", generations=GENERATIONS + 1, eval_every=10**6,
        seed=1, workers=workers, snapshot_every=0,
    )  # fmt: skip
    cluster = SimulatedCluster(workers, processes, *calls)
    engine = RayEngine(cluster, EngineOptions(workers, elastic=True))
    while not all(worker.info for worker in engine._workers.values()):
        engine._listen()
    clock = Clock(cluster, engine)
    with tempfile.TemporaryDirectory() as folder, one_thread():
        run = new_folder(config.replace(run_dir=str(Path(folder) / "run")))
        spec = replace(policy_spec(config), engine=lambda: engine)
        carry_out(spec, run, Listeners(False, [clock]))
    steps = np.diff(np.array(clock.times), axis=0)
    real, simulated_seconds, in_engine, ray = np.median(steps, axis=0)
    ideal = members * STEPS * STEP_SECONDS / workers
    return {
        "engine": in_engine / members,
        "learning": (real - in_engine) / members,
        "ray": ray / members,
        "driver": (real + ray) / members,
        "generation": simulated_seconds,
        "efficiency": ideal / simulated_seconds,
        "parameters": spec.strategy.dimension,
    }


def ray_calls(calls: int = 1000) -> tuple[float, float]:
    """Return median seconds, of five, of the driver's thread for a call of Ray and for its reply."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    from queue import SimpleQueue

    import ray

    class Answering:
        async def run(self, number: int, job: Any, items: Sequence[int]) -> Any:
            return "done", ROWS, 0.0

    ROWS = np.zeros((7, 3 + 2 * OBSERVATIONS))
    ray.init(num_cpus=2, object_store_memory=200 * 2**20, include_dashboard=False, logging_level="error")
    found = []
    try:
        actors = [ray.remote(Answering).options(max_concurrency=100).remote() for _ in range(2)]
        job = [ray.put(np.zeros(170_000, np.float32))]
        ray.get([actor.run.remote(0, job, [0]) for actor in actors])
        for _ in range(5):
            queue: SimpleQueue[Any] = SimpleQueue()
            began = time.thread_time()
            refs = [actors[i % 2].run.remote(i, job, list(range(7))) for i in range(calls)]
            for ref in refs:
                ref.future().add_done_callback(queue.put)
            sent = time.thread_time()
            for _ in range(calls):
                queue.get().result()
            found.append(((sent - began) / calls, (time.thread_time() - sent) / calls))
    finally:
        ray.shutdown()
    sends, replies = zip(*found, strict=True)
    return statistics.median(sends), statistics.median(replies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[16, 64, 256, 736, 1440, 2000])
    parser.add_argument("--members", type=int, nargs="+", default=[10_000])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, NODE_CORES], help="in an actor")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    calls = ray_calls()
    print(f"Ray: {calls[0] * 1e6:.0f} us a call, {calls[1] * 1e6:.0f} us a reply")
    print("workers members processes | us a member: engine learning Ray all | seconds efficiency")
    for members in given.members:
        for workers in given.workers:
            for processes in given.processes:
                if workers % processes or workers // processes < 1:
                    continue
                found = simulate(workers, members, processes, calls)
                if given.json:
                    print(
                        json.dumps({"workers": workers, "members": members, "processes": processes} | found)
                    )
                    continue
                us = [f"{found[name] * 1e6:7.1f}" for name in ("engine", "learning", "ray", "driver")]
                print(
                    f"{workers:7,} {members:7,} {processes:9} | {' '.join(us)} | "
                    f"{found['generation']:7.2f} {found['efficiency']:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
