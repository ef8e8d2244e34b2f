"""Benchmark of training against the raw simulator: useful over raw steps per second, measured in turns."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.config.options import Config
from escalade.engines import ENGINES, Engine, Feed, start_engine
from escalade.envs import Environment, settle_backend, vectorize
from escalade.envs.masks import Masks
from escalade.envs.structured import as_array
from escalade.errors import InputError
from escalade.perturbation import Stream, seeds
from escalade.support.interrupts import Interrupts
from escalade.training.environments import limited, with_workers
from escalade.training.limits import Limits
from escalade.training.loop import Loop
from escalade.training.parts import Parts, make_parts, make_strategy
from escalade.training.policy_objective import PolicyObjective


@dataclass(frozen=True)
class Measurement:
    """Result of :func:`bench`: medians over the rounds, in environment steps per second of all workers."""

    useful: float
    raw: float
    ratio: float
    backend: str
    workers: int
    population: int
    slots: int
    rounds: int


class RawSimulator:
    """Work of an engine that takes random actions: each item steps all slots for some seconds."""

    def __init__(self, environment: Environment, slots: int) -> None:
        self._random = RandomSlots(environment, slots)
        self._random.begin(seeds(0, Stream.EPISODE, 0, np.arange(slots)))

    def info(self) -> dict[str, Any]:
        return {"slots": 1}

    def begin(self, job: float) -> None:
        self._seconds = job

    def run(self, feed: Feed) -> None:
        while items := feed.take(1, wait=True):
            feed.put(items[0], self._random.step_for(self._seconds))

    def close(self) -> None:
        self._random.close()


_BATCHES = 16  # of actions, sampled in advance so that sampling is not measured
_LATER = 999  # index of the generation whose population size is measured


def bench(config: Config, *, seconds: float, rounds: int, report: Callable[[str], None]) -> Measurement:
    """Measure training against the raw simulator, in ``rounds`` alternating turns.

    Raw steps use the same backend and the same numbers of processes and slots as training. A turn of training
    takes at least one generation, including the policy update. A scheduled population has its size of
    generation 1,000.
    """
    population = config.members(_LATER)
    config = config.replace(population=population)
    if not 0 < seconds < math.inf:
        raise InputError("`seconds` must be a number above 0")
    if "worker_resources" in ENGINES[config.engine].options:
        raise InputError(f"`engine={config.engine}`: bench measures only this machine; remove the option")
    parts = make_parts(config)
    config = with_workers(config, parts.environment)
    workers = config.worker_count
    if workers == 0 and not parts.environment.batched:
        raise InputError("`workers=0`: bench measures worker processes; use at least 1")
    parts.environment = settle_backend(limited(parts.environment))
    useful: list[float] = []
    raw: list[float] = []
    with ExitStack() as engines:
        training = engines.enter_context(closing(parts.start_engine(config)))
        most = int(training.info["slots"])
        slots = min(most, -(-population * config.episodes_per_member // max(1, workers)))
        setup = partial(RawSimulator, parts.environment, slots)
        raw_engine = engines.enter_context(closing(start_engine(config.engine, setup, workers)))
        turn = _TrainingTurns(config, parts, training)
        turn.run(0.0)  # warm up memory and caches
        raw_engine.run(0.2, max(1, workers))
        for number in range(rounds):
            raw.append(sum(map(float, raw_engine.run(seconds, max(1, workers)).in_order())))
            useful.append(turn.run(seconds))
            report(
                f"round {number + 1}: training {useful[-1]:,.0f}, raw {raw[-1]:,.0f} steps/s, "
                f"ratio {useful[-1] / raw[-1]:.2f}"
            )
    return Measurement(
        useful=statistics.median(useful),
        raw=statistics.median(raw),
        ratio=statistics.median(u / r for u, r in zip(useful, raw, strict=True)),
        backend=parts.environment.backend,
        workers=workers,
        population=population,
        slots=slots,
        rounds=rounds,
    )


class _TrainingTurns:
    """Runs generations as the training loop does, without evaluations and files."""

    def __init__(self, config: Config, parts: Parts, engine: Engine) -> None:
        interrupts = Interrupts()
        objective = PolicyObjective(config, parts, engine, interrupts)
        strategy = make_strategy(config, parts.start, parts.perturbation)
        self._loop = Loop(objective, strategy, Limits(), eval_every=0, interrupts=interrupts)

    def run(self, seconds: float) -> float:
        """Return useful steps per second, over at least ``seconds`` and at least one generation."""
        began, before = time.perf_counter(), self._loop.progress.total.env_steps
        while True:
            if self._loop.generation() is None:
                raise KeyboardInterrupt
            spent = time.perf_counter() - began
            if spent >= seconds:
                return (self._loop.progress.total.env_steps - before) / spent


class RandomSlots:
    """Random actions in all slots of an environment, without a policy: an upper bound on training speed."""

    def __init__(self, environment: Environment, slots: int) -> None:
        self._vector = vectorize(environment, slots)
        self._slots = np.arange(self._vector.slots)
        self._masks: Masks | None = getattr(self._vector, "masks", None)
        space = environment.action_space
        space.seed(0)
        self._actions = [as_array([space.sample() for _ in self._slots]) for _ in range(_BATCHES)]
        self._steps = 0

    def begin(self, seeds: NDArray[np.int64] | None = None) -> float:
        """Reset all slots, and return the seconds per reset."""
        began = time.perf_counter()
        self._vector.reset(self._slots, self._slots if seeds is None else seeds)
        return (time.perf_counter() - began) / len(self._slots)

    def step_for(self, seconds: float) -> float:
        """Return steps per second over about ``seconds``, and at least one step in each slot."""
        began, before = time.perf_counter(), self._steps
        while self._steps == before or time.perf_counter() - began < seconds:
            self.step()
        return (self._steps - before) * len(self._slots) / (time.perf_counter() - began)

    def step(self) -> None:
        """Take a step in each slot, and restart ended episodes if the backend can refill slots."""
        actions = self._actions[self._steps % _BATCHES].copy()
        if self._masks is not None:
            actions = self._masks.legal(self._slots, actions)
        ended = self._vector.step(self._slots, actions)[2]
        if self._vector.refills and ended.any():
            over = np.flatnonzero(ended)
            self._vector.reset(self._slots[over], over)
        self._steps += 1

    def close(self) -> None:
        """Close the environments."""
        self._vector.close()
