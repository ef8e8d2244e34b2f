"""Forward passes of a population on one core: low-rank and full noise compared with the matrix products.

    python benchmarks/forward.py [--rows 64] [--rank 1]

The numbers are members x steps per second, medians of alternating rounds. ``products`` are only the matrix
products, in numpy: one for all members with the center's weights; for a convolution, one per image. ``share``
is the speed of low rank divided by that, ``times`` divided by that of full noise.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from escalade.perturbation import GaussianPopulation
from escalade.perturbation.registry import make_source
from escalade.policies.networks import batched_network, build, layout_of, to_vector
from escalade.policies.population.stack import Stack
from escalade.support.exact import one_thread

NETWORKS: dict[str, tuple[str, Any, int, dict[str, Any]]] = {
    "HalfCheetah 64-64": ("mlp", (17,), 6, {"hidden": [64, 64]}),
    "HalfCheetah 256-256": ("mlp", (17,), 6, {"hidden": [256, 256]}),
    "Humanoid 256-256": ("mlp", (348,), 17, {"hidden": [256, 256]}),
    "Nature's hidden layer": ("linear", (3136,), 512, {}),
    "Nature CNN": ("nature", (4, 84, 84), 6, {}),
    "conv-lstm": ("conv-lstm", (1, 42, 42), 6, {}),
    "gru 64-64": ("gru", (17,), 6, {"hidden": [64, 64]}),
}


def seconds(call: Callable[[], Any]) -> float:
    """Return the time of one call, measured over at least 50 ms of calls."""
    calls, start = 0, time.perf_counter()
    while time.perf_counter() - start < 0.05:
        call()
        calls += 1
    return (time.perf_counter() - start) / calls


def products(stack: Stack, rows: int) -> Callable[[], None]:
    """The matrix products of a pass with shared weights, on arbitrary numbers."""
    chance, pairs = np.random.default_rng(0), []
    for layer in stack.layers:
        matrices = [shape for shape in layer.shapes if len(shape) > 1]
        if len(matrices) != 1:  # a cell's, which take little of its time
            continue
        first, *rest = matrices[0]
        if len(layer.outputs) == 3:  # the filters of a convolution
            _, high, long = layer.outputs
            shapes, times = ((high * long, math.prod(rest)), (math.prod(rest), first)), rows
        else:
            shapes, times = ((rows, first), (first, *rest)), 1
        left, right = (chance.standard_normal(shape, dtype=np.float32) for shape in shapes)
        pairs.append((left, right, np.empty((len(left), right.shape[1]), np.float32), times))

    def multiply() -> None:
        for left, right, out, times in pairs:
            for _ in range(times):
                np.matmul(left, right, out=out)

    return multiply


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--rank", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    chosen = parser.parse_args()
    rows = chosen.rows
    print(f"{'network':24} {'products':>10} {'low rank':>10} {'share':>6} {'full':>10} {'times':>6}")
    with one_thread():
        for name in chosen.networks:
            policy, shape, outputs, options = NETWORKS[name]
            module = build(policy, shape, outputs, **options)
            stack, center = batched_network(module, shape), to_vector(module)
            assert isinstance(stack, Stack)
            seen = np.random.default_rng(1).standard_normal((rows, *shape)).astype(np.float32)
            calls = [products(stack, rows)]
            for perturbation in (f"low-rank:{chosen.rank}", "full"):
                source = make_source(perturbation, 1, layout_of(module).held_shapes)
                population = GaussianPopulation(center, 0.05, source, 1, 0, rows)
                forward = stack.forward(rows, source)
                forward.begin(center)
                for row in range(rows):
                    forward.load(row, population, row)
                calls.append(partial(forward, seen))
            times = [[seconds(call) for call in calls] for _ in range(chosen.rounds)]
            raw, low, full = (statistics.median(column) for column in zip(*times, strict=True))
            print(
                f"{name:24} {rows / raw:10,.0f} {rows / low:10,.0f} {raw / low:6.2f} "
                f"{rows / full:10,.0f} {full / low:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
