"""Time that the training process takes while its workers wait.

    python benchmarks/master.py

First: processor time of that process for each member of a generation, with workers that return at once
(10,000 members of 114 parameters, every piece of the generation loop but checkpoints). Then: the share
of a CartPole generation's wall time that is spent outside of ``engine.run``, with real workers (128
members). Medians over generations, evaluations left out.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from escalade.config.options import Config
from escalade.engines import Engine, Feed, start_engine
from escalade.envs import settle_backend
from escalade.rollout.episodes import EpisodeJob, RecordType
from escalade.support.exact import one_thread
from escalade.support.interrupts import Interrupts
from escalade.training.limits import Limits
from escalade.training.loop import Loop
from escalade.training.parts import Parts, make_parts, make_strategy
from escalade.training.policy_objective import PolicyObjective


@dataclass(frozen=True)
class Instant:
    """Create work that immediately returns made-up episodes as wide as real ones."""

    observation: int

    def __call__(self) -> Instant:
        return self

    def info(self) -> dict[str, Any]:
        return {"slots": 1024}

    def begin(self, job: EpisodeJob) -> None:
        pass

    def run(self, feed: Feed) -> None:
        while items := feed.take(1024, wait=True):
            numbers = np.array(items)
            records = np.ones(len(items), RecordType(observation=self.observation).observed)
            for name in ("return", "length", "score"):
                records[name] = 10 + numbers % 97
            feed.put_many(numbers, records)

    def close(self) -> None:
        pass


class Timed:
    """An engine whose runs are timed."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.on_note = engine, engine.on_note
        self.seconds = 0.0

    @property
    def info(self) -> dict[str, Any]:
        return self.engine.info

    def run(self, job: Any, items: int) -> Any:
        began = time.perf_counter()
        try:
            return self.engine.run(job, items)
        finally:
            self.seconds += time.perf_counter() - began

    def close(self) -> None:
        self.engine.close()


def config(population: int, generations: int) -> Config:
    return Config(
        env="CartPole-v1",
        strategy="openai-es",
        population=population,
        hidden=(16,),
        generations=generations,
        eval_every=10**6,
        workers=2,
    )


def generations(config: Config, parts: Parts, engine: Engine) -> list[tuple[float, float, float]]:
    """Return wall, processor and ``engine.run`` seconds of every generation except the first."""
    timed, moments = Timed(engine), []

    def now(view: Any) -> None:
        moments.append((time.perf_counter(), time.process_time(), timed.seconds))

    interrupts = Interrupts()
    loop = Loop(
        PolicyObjective(config, parts, timed, interrupts),
        make_strategy(config, parts.start, parts.perturbation),
        Limits(config.generations, None, None, None),
        eval_every=0,
        interrupts=interrupts,
        callbacks=[now],
    )
    with one_thread():
        loop.run()
    spent = np.diff(np.array(moments), axis=0)
    return [tuple(row) for row in spent.tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--generations", type=int, default=40)
    arguments = parser.parse_args()
    large = config(arguments.members, arguments.generations)
    parts = make_parts(large)
    parts.environment = settle_backend(parts.environment)
    sizes = len(parts.policy.observation_mean)
    engine: Engine = start_engine("local", Instant(sizes), 2)
    try:
        cost = [1e6 * cpu / arguments.members for _, cpu, _ in generations(large, parts, engine)]
    finally:
        engine.close()
    print(
        f"{statistics.median(cost):.1f} us of processor time a member "
        f"({arguments.members:,} members, {len(parts.start)} parameters)"
    )
    small = config(128, 5 * arguments.generations)
    engine = parts.start_engine(small)
    try:
        shares = [100 * (1 - inside / wall) for wall, _, inside in generations(small, parts, engine)]
    finally:
        engine.close()
    print(f"{statistics.median(shares):.1f} % of a generation of 128 members outside of engine.run")


if __name__ == "__main__":
    main()
