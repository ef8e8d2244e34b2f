"""Time of four parts of the training process, here and in version 0.1.0.

    python benchmarks/parts.py
    PYTHONPATH=CHECKOUT_OF_0.1.0/src python benchmarks/parts.py

Each is a median: merging the moments of 10,000 episodes, the sum over 64 perturbations of 114 parameters, the
versions that a checkpoint records, and reading ``result`` after 5,000 generations.
"""

from __future__ import annotations

import importlib
import inspect
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from escalade.perturbation import NoiseTable
from escalade.perturbation.slices import TableSlices
from escalade.policies.normalizer import Normalizer
from escalade.strategies import SNES

EPISODES = 10_000


def median(call: Callable[[], Any], times: int) -> float:
    call()
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def merging() -> float:
    chance = np.random.default_rng(0)
    lengths, moments = chance.integers(10, 500, EPISODES), chance.random((EPISODES, 2, 4))
    normalizer = Normalizer(4)
    merge: Any = normalizer.merge_episodes
    shift = [np.zeros(4)] if "shift" in inspect.signature(merge).parameters else []  # 0.1.0 has one
    return median(lambda: merge(lengths, *shift, moments), 7) / EPISODES


def summing() -> float:
    chance = np.random.default_rng(0)
    noise = NoiseTable(0, 2**22).values
    starts, weights = chance.integers(0, 2**22 - 200, 64), chance.random(64)
    return median(lambda: TableSlices(noise, starts, 114).weighted_sum(weights), 50)


def versions() -> float:
    try:
        module = importlib.import_module("escalade.support.machine")
    except ImportError:
        module = importlib.import_module("escalade.trainer")
    return median(module.versions, 20)


def result() -> float:
    strategy = SNES(np.zeros(3), population=4, sigma=0.1)
    for _ in range(5000):
        strategy.ask()
        strategy.tell([1, 2, 3, 4])
    return median(lambda: strategy.result, 50)


if __name__ == "__main__":
    print(f"merging moments: {merging() * 1e6:.2f} us an episode")
    print(f"sum over perturbations: {summing() * 1e3:.3f} ms")
    print(f"versions: {versions() * 1e3:.3f} ms")
    print(f"result: {result() * 1e6:.0f} us")
