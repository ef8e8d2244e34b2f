"""The learning rate schedule of a training run, tuned from short windows of the run.

    python examples/truncated_unrolls.py [--methods persistent]

The run takes 100 steps of gradient descent on a function with many dents. Its learning rate changes linearly
from ``exp(theta_0)`` to ``exp(theta_1)``. The goal is a small mean loss. A window of ten steps shows the
effect of a learning rate on the next ten losses only. ``truncated``, an evolution strategy on windows, is
therefore biased and ends at a worse schedule. Persistent ES also runs only a window per generation, but ends
where ``whole`` does, which needs ten times as much work per generation. The toy problem is from Vicol, Metz
and Sohl-Dickstein 2021 (arXiv 2112.13835), section 5.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from escalade.strategies import OpenAIES, PersistentES

Array = NDArray[np.float64]
STEPS, WINDOWS = 100, 10
MEMBERS = 100


def loss(x: Array) -> Array:
    """Return the loss of the inner run at points of shape (n, 2)."""
    a, b = x.T
    dents = np.sin(b) ** 2 * np.exp(-5 * a**2)
    return np.asarray(np.sqrt(a**2 + 5) - np.sqrt(5) + dents + 0.25 * np.abs(b - 100))


def slope(x: Array) -> Array:
    """Return the gradient of the loss, shape (n, 2)."""
    a, b = x.T
    hill = np.exp(-5 * a**2)
    along_a = a / np.sqrt(a**2 + 5) - 10 * a * np.sin(b) ** 2 * hill
    along_b = np.sin(2 * b) * hill + 0.25 * np.sign(b - 100)
    return np.stack([along_a, along_b], axis=1)


def begin(members: int) -> tuple[Array, Array]:
    """Return the inner states of new runs: points, and numbers of steps done."""
    return np.ones((members, 2)), np.zeros(members)


def unroll(theta: Array, points: Array, done: Array, steps: int) -> tuple[Array, Array, Array]:
    """Run ``steps`` more of each member's training run; return its mean loss there, and the new states."""
    total = np.zeros(len(theta))
    for _ in range(steps):
        rates = np.exp(theta[:, 0]) * (1 - done / STEPS) + np.exp(theta[:, 1]) * done / STEPS
        points = points - rates[:, None] * slope(points)
        done = done + 1
        total += np.minimum(loss(points), 1e3)
    return total / steps, points, done


def tune(method: str, generations: int, seed: int = 0) -> Array:
    """Return the logarithms of the tuned learning rates at the start and at the end, shape (2,)."""
    start, options = np.log([0.01, 0.01]), {"lr": 0.05, "seed": seed, "direction": "minimize"}
    if method in ("persistent", "noise-reuse"):
        hold = WINDOWS if method == "noise-reuse" else 1
        es = PersistentES(start, MEMBERS, 0.3, windows=WINDOWS, hold=hold, **options)
    else:
        es = OpenAIES(start, MEMBERS, 0.3, shaping="raw", **options)
    points, done = begin(MEMBERS)
    for _ in range(generations):
        theta = es.ask().numpy()
        if method == "whole":
            fitness, *_ = unroll(theta, *begin(MEMBERS), STEPS)
        else:
            fresh = es.fresh if isinstance(es, PersistentES) else done == STEPS
            points[fresh], done[fresh] = 1.0, 0.0
            fitness, points, done = unroll(theta, points, done, STEPS // WINDOWS)
        es.tell(fitness)
    return np.asarray(es.center.numpy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    methods = ["persistent", "noise-reuse", "truncated", "whole"]
    parser.add_argument("--methods", nargs="+", default=methods, choices=methods)
    parser.add_argument("--generations", type=int, default=1000)
    args = parser.parse_args()
    for method in args.methods:
        theta = tune(method, args.generations)
        mean, *_ = unroll(theta[None], *begin(1), STEPS)
        first, last = np.exp(theta)
        print(f"{method:12} learning rate from {first:.3g} to {last:.3g}: mean loss {mean[0]:.3f}")


if __name__ == "__main__":
    main()
