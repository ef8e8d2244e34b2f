"""The share of the simulators' speed that training gets: useful steps over raw ones, measured in turns."""

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
    """Medians over alternating runs, in environment steps a second of all workers together."""

    useful: float
    raw: float
    ratio: float
    backend: str
    workers: int
    population: int
    slots: int
    rounds: int


class RawSimulator:
    """Random actions in a simulator as an engine's work: each item steps every slot for a while."""

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


_BATCHES = 16  # of actions, drawn beforehand: choosing them is not the simulator's time
_LATER = 999  # the generation whose population is measured, from 0


def bench(config: Config, *, seconds: float, rounds: int, report: Callable[[str], None]) -> Measurement:
    """Measure training against the raw simulator, in ``rounds`` alternating turns.

    Raw steps use the same backend, the same number of processes, and as many slots in each as
    training has. A turn of training is at least one generation, policy update included. A population with
    a schedule is measured as it is in generation 1,000.
    """
    population = config.members(_LATER)
    config = config.replace(population=population)
    if not 0 < seconds < math.inf:
        raise InputError("`seconds` must be a number above 0")
    if "worker_resources" in ENGINES[config.engine].options:
        raise InputError(f"`engine={config.engine}`: bench measures this machine alone: leave it out")
    parts = make_parts(config)
    config = with_workers(config, parts.environment)
    workers = config.worker_count
    if workers == 0 and not parts.environment.batched:
        raise InputError("`workers=0`: bench measures worker processes, so use at least 1")
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
        turn.run(0.0)  # warm-up: first contact with every page and cache
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
    """Generations as the loop runs them, without evaluations and files."""

    def __init__(self, config: Config, parts: Parts, engine: Engine) -> None:
        interrupts = Interrupts()
        objective = PolicyObjective(config, parts, engine, interrupts)
        strategy = make_strategy(config, parts.start, parts.perturbation)
        self._loop = Loop(objective, strategy, Limits(), eval_every=0, interrupts=interrupts)

    def run(self, seconds: float) -> float:
        """Useful steps a second over at least ``seconds`` and one generation."""
        began, before = time.perf_counter(), self._loop.progress.total.env_steps
        while True:
            if self._loop.generation() is None:
                raise KeyboardInterrupt
            spent = time.perf_counter() - began
            if spent >= seconds:
                return (self._loop.progress.total.env_steps - before) / spent


class RandomSlots:
    """Random actions in all slots of an environment, without a policy: the most that training can reach."""

    def __init__(self, environment: Environment, slots: int) -> None:
        self._vector = vectorize(environment, slots)
        self._slots = np.arange(self._vector.slots)
        self._masks: Masks | None = getattr(self._vector, "masks", None)
        space = environment.action_space
        space.seed(0)
        self._actions = [as_array([space.sample() for _ in self._slots]) for _ in range(_BATCHES)]
        self._steps = 0

    def begin(self, seeds: NDArray[np.int64] | None = None) -> float:
        """Begin an episode in each slot, and return the seconds that one took."""
        began = time.perf_counter()
        self._vector.reset(self._slots, self._slots if seeds is None else seeds)
        return (time.perf_counter() - began) / len(self._slots)

    def step_for(self, seconds: float) -> float:
        """Return the steps a second over about ``seconds``, and over one step in each slot at least."""
        began, before = time.perf_counter(), self._steps
        while self._steps == before or time.perf_counter() - began < seconds:
            self.step()
        return (self._steps - before) * len(self._slots) / (time.perf_counter() - began)

    def step(self) -> None:
        """Take a step in each slot; ended episodes begin anew where the backend refills its slots."""
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
