"""Asynchronous workers: evaluations and time to a target, and the utilization of eight workers.

    python benchmarks/asynchronous.py simulated [--seeds 7]
    python benchmarks/asynchronous.py real [--budget 1200]

``simulated``: CMA-ES on four functions to 1e-8, with eight workers and evaluations of 10 to 100 ms of
simulated time: generation by generation with the default population, and one by one with that of
``optimize(asynchronous=True)``. ``real``: calls of ``optimize`` with a function that sleeps for as long.
"""

from __future__ import annotations

import argparse
import heapq
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import escalade
from escalade.strategies import CMAES
from escalade.wings.optimize.asynchronous import asynchronous_population

WORKERS, MOST = 8, 60_000
FUNCTIONS: dict[str, Callable[[Any], float]] = {
    "sphere": lambda x: float(x @ x),
    "ellipsoid": lambda x: float((10.0 ** (6 * np.arange(len(x)) / (len(x) - 1)) * x**2).sum()),
    "Rosenbrock": lambda x: float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()),
    "cigar": lambda x: float(x[0] ** 2 + 1e6 * (x[1:] ** 2).sum()),
}


def together(function: Callable[[Any], float], dimension: int, seed: int) -> tuple[int, float]:
    """Return evaluations and seconds to the target, generation by generation."""
    es = CMAES(np.full(dimension, 1.5), sigma=1.0, seed=seed, direction="minimize")
    rng, evaluations, now = np.random.default_rng(seed), 0, 0.0
    while evaluations < MOST:
        values = [function(x) for x in es.ask().numpy()]
        free = [now] * WORKERS
        for value in values:
            ends = heapq.heappop(free) + rng.uniform(0.01, 0.1)
            heapq.heappush(free, ends)
            evaluations += 1
            if value < 1e-8:
                return evaluations, ends
        now = max(free)
        es.tell(values)
    return evaluations, now


def one_by_one(function: Callable[[Any], float], dimension: int, seed: int) -> tuple[int, float]:
    """Return evaluations and seconds to the target, with one update per value."""
    population = asynchronous_population(dimension, WORKERS)
    es = CMAES(np.full(dimension, 1.5), population, sigma=1.0, seed=seed, direction="minimize")
    rng = np.random.default_rng(seed)
    running = [(rng.uniform(0.01, 0.1), *es.ask_one()) for _ in range(WORKERS)]
    heapq.heapify(running)
    evaluations, value = 0, np.inf
    while value >= 1e-8 and evaluations < MOST:
        evaluations += 1
        now, number, point = heapq.heappop(running)
        value = function(point.numpy())
        es.tell_one(number, value)
        heapq.heappush(running, (now + rng.uniform(0.01, 0.1), *es.ask_one()))
    return evaluations, now


def simulated(seeds: int) -> None:
    print("| function | dimension | evaluations | one by one | ratio | seconds | one by one | ratio |")
    print("| --- " * 8 + "|")
    for name, function in FUNCTIONS.items():
        for dimension in (5, 10, 20):
            runs = [
                [way(function, dimension, seed) for seed in range(seeds)] for way in (together, one_by_one)
            ]
            (evaluations, seconds), (later, faster) = (
                [statistics.median(part) for part in zip(*way, strict=True)] for way in runs
            )
            print(
                f"| {name} | {dimension} | {evaluations:,.0f} | {later:,.0f} | {later / evaluations:.2f} | "
                f"{seconds:,.0f} | {faster:,.0f} | {faster / seconds:.2f} |",
                flush=True,
            )


def slow(x: Any) -> float:
    time.sleep(0.01 + 0.09 * ((abs(x[0]) * 12345.678) % 1))
    return FUNCTIONS["Rosenbrock"](x)


def real(budget: int) -> None:
    print("| dimension | asynchronous | busy |\n| --- | --- | --- |")
    for dimension in (5, 10):
        for asynchronous in (False, True):
            seen: list[tuple[float, int]] = []
            escalade.optimize(
                slow,
                np.full(dimension, 0.5),
                sigma=0.3,
                workers=WORKERS,
                asynchronous=asynchronous,
                budget=budget,
                callback=lambda found, seen=seen: seen.append((time.monotonic(), found.evaluations)),  # type: ignore[misc]
            )
            (begun, first), (ended, last) = seen[3], seen[-1]  # the workers have started by then
            busy = (last - first) * 0.055 / (WORKERS * (ended - begun))
            print(f"| {dimension} | {asynchronous} | {busy:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("simulated").add_argument("--seeds", type=int, default=7)
    commands.add_parser("real").add_argument("--budget", type=int, default=1200)
    arguments = parser.parse_args()
    if arguments.command == "simulated":
        simulated(arguments.seeds)
    else:
        real(arguments.budget)


if __name__ == "__main__":
    main()
