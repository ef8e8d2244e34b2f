"""Evaluations to a target on two problems with many integers from pycma's issues, compared with pycma.

    pip install escalade cma
    python benchmarks/whole_numbers.py [--problems ellipsoid sphere] [--seeds 3]

``ellipsoid``: 30 parameters, every other one whole, pycma's issue 314. ``sphere``: 256 parameters, the first
244 of them whole, issue 305. A run is one search with the packages' defaults for all other settings.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np

import escalade

Rows = np.ndarray[Any, np.dtype[np.float64]]


class Problem(NamedTuple):
    weights: Rows
    """Weights of the squared parameters."""
    whole: list[int]
    x0: float
    sigma: float
    target: float
    budget: int

    def rounded(self, rows: Rows) -> Rows:
        rows = np.array(rows)
        rows[..., self.whole] = np.rint(rows[..., self.whole])
        return self.value(rows)

    def value(self, rows: Rows) -> Rows:
        return np.asarray((self.weights * np.asarray(rows) ** 2).sum(-1))


PROBLEMS = {
    "ellipsoid": Problem(1e6 ** (np.arange(30) / 29), list(range(0, 30, 2)), 0.35, 1.1985, 1e-5, 200_000),
    "sphere": Problem(np.ones(256), list(range(244)), 0.12, 0.2, 1e-6, 100_000),
}


def ours(problem: Problem, seed: int, *, inside: bool) -> tuple[int, float]:
    found = escalade.optimize(
        problem.rounded if inside else problem.value,
        np.full(len(problem.weights), problem.x0),
        sigma=problem.sigma,
        integers=None if inside else problem.whole,
        target=problem.target,
        budget=problem.budget,
        vectorized=True,
        seed=seed,
    )
    return found.evaluations, found.best_fitness


def pycma(problem: Problem, seed: int, *, inside: bool) -> tuple[int, float]:
    import cma

    options = {"seed": seed + 1, "verbose": -9, "verb_log": 0}
    options |= {"ftarget": problem.target, "maxfevals": problem.budget}
    if not inside:
        options["integer_variables"] = problem.whole
    value = problem.rounded if inside else problem.value

    def function(x: Rows) -> float:
        return float(value(x))

    _, es = cma.fmin2(function, np.full(len(problem.weights), problem.x0), problem.sigma, options)
    return int(es.result.evaluations), float(es.result.fbest)


WAYS: dict[str, tuple[Callable[..., tuple[int, float]], bool]] = {
    "cma-es, `integers`": (ours, False),
    "cma-es, rounded inside": (ours, True),
    "pycma, `integer_variables`": (pycma, False),
    "pycma, rounded inside": (pycma, True),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| problem | way | evaluations to the target, or what was reached |\n| --- | --- | --- |")
    for name in chosen.problems:
        for way in chosen.ways:
            search, inside = WAYS[way]
            runs = [search(PROBLEMS[name], seed, inside=inside) for seed in range(chosen.seeds)]
            cells = [f"{n:,}" if best <= PROBLEMS[name].target else f"{best:.1e}" for n, best in runs]
            print(f"| {name} | {way} | {', '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
