"""Steps per second of the engine ray on one node of this machine, compared with the engine local.

    python benchmarks/ray_overhead.py

Whole generations of the real training loop. The two engines alternate, and each is started once. Prints
medians over the rounds, and the ratio: the cost of the cluster's engine on a single machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from escalade.config.files import new_folder
from escalade.config.options import Config
from escalade.support.exact import one_thread
from escalade.training.policy_run import policy_spec
from escalade.training.run import Listeners, carry_out


class Rates:
    """Steps and seconds of generations, without the first, in which workers start."""

    def __init__(self) -> None:
        self.began = self.steps = 0.0
        self.rate = 0.0

    def generation(self, row: Any) -> None:
        if row.generation == 1:
            self.began, self.steps = time.monotonic(), row.env_steps
        else:
            self.rate = (row.env_steps - self.steps) / (time.monotonic() - self.began)

    def note(self, text: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Kept:
    """An engine that runs through several runs."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.on_note: Any = None
        self.on_wait: Any = None

    @property
    def info(self) -> Any:
        return self._engine.info

    def run(self, job: Any, items: int) -> Any:
        return self._engine.run(job, items)

    def close(self) -> None:
        """Later."""


def turn(config: Config, engine: Any) -> float:
    """Return steps per second of a few generations."""
    rates = Rates()
    with tempfile.TemporaryDirectory() as folder, one_thread():
        run = new_folder(config.replace(run_dir=str(Path(folder) / "run")))
        spec = replace(policy_spec(config), engine=lambda: Kept(engine))
        carry_out(spec, run, Listeners(False, [rates]))
    return rates.rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--env", default="HalfCheetah-v5")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--population", type=int, default=256)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--generations", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    config = Config(
        env=given.env, population=given.population, backend=given.backend, workers=given.workers,
        generations=given.generations, seed=1, eval_every=10**6, snapshot_every=0,
        strategy="openai-es", hidden=(64, 64),
    )  # fmt: skip
    with one_thread():
        specs = {name: policy_spec(config.replace(engine=name)) for name in ("local", "ray")}
        engines = {name: spec.engine() for name, spec in specs.items()}
    try:
        found: dict[str, list[float]] = {name: [] for name in engines}
        for engine in engines.values():  # workers start, and caches fill
            turn(config, engine)
        for number in range(given.rounds):
            for name, engine in engines.items():
                found[name].append(turn(config, engine))
                print(f"{number + 1} {name}: {found[name][-1]:,.0f} steps/s", flush=True)
    finally:
        for engine in engines.values():
            engine.close()
    backend = specs["local"].machine["backend"]
    local, ray = (statistics.median(found[name]) for name in ("local", "ray"))
    ratio = statistics.median(r / here for r, here in zip(found["ray"], found["local"], strict=True))
    print(
        f"{given.env} on {backend}, population {given.population}, {given.workers} workers: "
        f"local {local:,.0f}, ray {ray:,.0f} steps/s; ratio {ratio:.3f} (median of {given.rounds} pairs)"
    )


if __name__ == "__main__":
    main()
