"""Evaluations and seconds to a target with thousands of parameters, compared with other packages.

    pip install escalade cma crfmnes lmmaes
    python benchmarks/high_dimension.py --dimension 1000 --budget 3000000 --alone
    python benchmarks/high_dimension.py --dimension 1000 --budget 20000
    python benchmarks/high_dimension.py --dimension 200 --budget 100000 --alone --strategies MAES CRFMNES RMES

Each strategy and its peer start at the same point with the same population and sigma. Seconds are processor
time of the strategy without the function's, so a peer that calls the function row by row has no disadvantage.
If the budget ends a run, its value is shown instead of its evaluations. ``--alone`` omits the peers.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np

import escalade.strategies as ours

Rows = np.ndarray[Any, np.dtype[np.float64]]


def ellipsoid(x: Rows) -> Rows:
    """Squares weighted from 1 to 1e6."""
    d = x.shape[1]
    return np.asarray(x**2 @ 10.0 ** (6 * np.arange(d) / (d - 1)))


def rosenbrock(x: Rows) -> Rows:
    """A bent valley; the minimum is at (1, ..., 1)."""
    return np.asarray((100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(axis=1))


def k_tablet(x: Rows) -> Rows:
    """The last three quarters of the parameters weigh 10,000 times as much as the first."""
    k = x.shape[1] // 4
    return np.asarray((x[:, :k] ** 2).sum(axis=1) + ((100 * x[:, k:]) ** 2).sum(axis=1))


@functools.cache
def turn(d: int) -> Rows:
    return np.asarray(np.linalg.qr(np.random.default_rng(0).normal(size=(d, d)))[0])


def turned_ellipsoid(x: Rows) -> Rows:
    """The ellipsoid, along random axes."""
    return ellipsoid(x @ turn(x.shape[1]))


def turned_cigar(x: Rows) -> Rows:
    """Long in one direction, and a million times as steep in all others, along random axes."""
    y = x @ turn(x.shape[1])
    return np.asarray(y[:, 0] ** 2 + 1e6 * (y[:, 1:] ** 2).sum(axis=1))


COUPLED = {"ellipsoid, turned": turned_ellipsoid, "cigar, turned": turned_cigar}
FUNCTIONS = {"ellipsoid": ellipsoid, "rosenbrock": rosenbrock, "k-tablet": k_tablet} | COUPLED


class Reached(Exception):
    """Raised at the target or at the end of the budget."""


@dataclass
class Counted:
    """A function that counts its evaluations and its own time, and stops the search."""

    function: Callable[[Rows], Rows]
    value: float
    budget: int
    evaluations: int = 0
    seconds: float = 0.0
    best: float = np.inf

    def __call__(self, rows: Rows) -> Rows:
        began = time.process_time()
        values = self.function(rows)
        self.evaluations += len(rows)
        self.best = min(self.best, float(values.min()))
        self.seconds += time.process_time() - began
        if self.best <= self.value or self.evaluations >= self.budget:
            raise Reached
        return values


def own(name: str) -> Callable[..., None]:
    def search(call: Counted, x0: Rows, population: int, seed: int) -> None:
        es = getattr(ours, name)(x0, population, 2.0, seed=seed, direction="minimize")
        while True:
            es.tell(call(es.ask().numpy()))

    return search


def crfmnes(call: Counted, x0: Rows, population: int, seed: int) -> None:
    import crfmnes as package

    def one(x: Rows) -> float:
        return float(call(x.T)[0])

    package.CRFMNES(len(x0), one, x0[:, None], 2.0, population, seed=seed).optimize(10**9)


def lmmaes(call: Counted, x0: Rows, population: int, seed: int) -> None:
    import lmmaes as package

    search = package.Lmmaes(x0, 2.0, popsize=population, rseed=seed, verbose=False)
    while True:
        search.tell(call(search.ask()))


def pycma(call: Counted, x0: Rows, population: int, seed: int) -> None:
    import cma

    options = {"CMA_diagonal": True, "popsize": population, "seed": seed, "verbose": -9}
    search = cma.CMAEvolutionStrategy(x0, 2.0, options)
    while True:
        members = search.ask()
        search.tell(members, call(np.array(members)).tolist())


ENTRIES = {
    "CRFMNES": ("crfmnes", crfmnes),
    "LMMAES": ("lmmaes", lmmaes),
    "SepCMAES": ("pycma, diagonal", pycma),
}
ALONE = ("CMAES", "MAES", "VDCMA", "RMES")


def run(search: Callable[..., None], call: Counted, d: int, seed: int) -> tuple[float, float]:
    """Return seconds of the strategy alone, and the best value."""
    population = 4 + int(3 * np.log(d))
    x0 = np.random.default_rng(seed).uniform(1, 5, d)
    began = time.process_time()
    with contextlib.suppress(Reached):
        search(call, x0, population + population % 2, seed)
    return time.process_time() - began - call.seconds, call.best


def cell(runs: list[tuple[Counted, float]], value: float) -> tuple[str, str]:
    """Return median evaluations or value, and microseconds per evaluation; empty without runs."""
    if not runs:
        return "", ""
    solved = [call.evaluations for call, _ in runs if call.best <= value]
    spent = statistics.median(1e6 * seconds / call.evaluations for call, seconds in runs)
    if 2 * len(solved) > len(runs):
        return f"{statistics.median(solved):,.0f} ({len(solved)} of {len(runs)})", f"{spent:.1f}"
    return f"{statistics.median(call.best for call, _ in runs):.3g} reached", f"{spent:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dimension", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--budget", type=int, default=3_000_000)
    parser.add_argument("--value", type=float, default=1e-6)
    parser.add_argument(
        "--functions", nargs="+", default=["ellipsoid", "rosenbrock", "k-tablet"], choices=FUNCTIONS
    )
    parser.add_argument("--strategies", nargs="+", default=list(ENTRIES), choices=[*ENTRIES, *ALONE])
    parser.add_argument("--alone", action="store_true", help="without peers, as those that have none need it")
    chosen = parser.parse_args()
    print("| function | strategy (peer) | evaluations | peer | us an evaluation | peer | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for function in chosen.functions:
        for name in chosen.strategies:
            searches = [own(name)] if chosen.alone else [own(name), ENTRIES[name][1]]
            runs: list[list[tuple[Counted, float]]] = [[], []]
            for seed in chosen.seeds:
                for kept, search in zip(runs, searches, strict=False):
                    call = Counted(FUNCTIONS[function], chosen.value, chosen.budget)
                    seconds, _ = run(search, call, chosen.dimension, seed)
                    kept.append((call, seconds))
            (done, spent), (theirs, theirs_spent) = (cell(kept, chosen.value) for kept in runs)
            ratio = "" if chosen.alone else f"{float(spent) / float(theirs_spent):.2f}"
            peer = "" if chosen.alone else f" ({ENTRIES[name][0]})"
            cells = [function, f"{name}{peer}", done, theirs, spent, theirs_spent, ratio]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
