"""Time of OpenAI-ES to sample and to learn, compared with one read of its noise from memory.

    python benchmarks/ask_tell.py [--dimension 100000] [--population 256]

In alternating rounds on one core: ``sample`` (members as addresses, what the trainer and ``evolve`` use)
and ``tell``; ``ask`` (members written out) and ``tell``; and a plain numpy pass that sums the same bytes of
the noise table. Medians, and the peak of memory taken beyond the table, in units of the parameters.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from escalade.strategies import OpenAIES


def milliseconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - began)


def peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dimension", type=int, default=100_000)
    parser.add_argument("--population", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=21)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dimension, population = arguments.dimension, arguments.population
    strategy = OpenAIES(torch.zeros(dimension), population=population)
    noise = strategy.perturbation.values
    # Every page of the table and of the libraries is in memory before memory is counted.
    float(noise.sum())
    small = OpenAIES(torch.zeros(10), population=4)
    small.sample()
    small.tell([1.0, 2.0, 3.0, 4.0])
    chance = np.random.default_rng(0)

    def learn() -> None:
        strategy.sample()
        strategy.tell(chance.standard_normal(population))

    def learn_written_out() -> None:
        strategy.ask()
        strategy.tell(chance.standard_normal(population))

    def read() -> float:
        return sum(float(noise[start : start + dimension].sum()) for start in strategy.sample().draws.starts)

    before = peak_bytes()
    learn()
    first = (peak_bytes() - before) / (4 * dimension)
    turns = [
        (milliseconds(learn), milliseconds(read), milliseconds(learn_written_out))
        for _ in range(arguments.rounds)
    ]
    learned, passed, written = (statistics.median(column) for column in zip(*turns, strict=True))
    print(f"{dimension:,} parameters, population {population}, medians of {arguments.rounds}")
    print(f"sample + tell  {learned:7.2f} ms   {learned / passed:.2f} of the pass")
    print(f"numpy pass     {passed:7.2f} ms")
    print(f"ask + tell     {written:7.2f} ms   {written / passed:.2f} of the pass (members written out)")
    print(
        f"peak memory, table apart: {first:.1f} x parameters in the first turn, 2 of them the moments of Adam"
    )


if __name__ == "__main__":
    main()
