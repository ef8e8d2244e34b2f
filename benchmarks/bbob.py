"""Evaluations to a target on BBOB functions, compared with other packages from the same starts.

    pip install escalade coco-experiment evosax evotorch cmaes cma nevergrad
    python benchmarks/bbob.py [--dimensions 2 10 40] [--names NAME ...] [--instances 10]
    python benchmarks/bbob.py table

Adds a line to results/bbob.jsonl for each run that is not there yet: of a strategy or a peer, with its
default population and a sigma of 2, on an instance of a function from a start in [-4, 4). A run ends within
1e-5 of the optimum, or after 2,000 evaluations per dimension, without restarts.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import logging
import os
import statistics
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np

import functions
import presets

RESULTS = Path(__file__).parent / "results" / "bbob.jsonl"
FUNCTIONS = {
    1: "sphere",
    2: "ellipsoid",
    6: "attractive sector",
    8: "Rosenbrock",
    10: "ellipsoid, rotated",
    11: "discus",
    12: "bent cigar",
    13: "sharp ridge",
    14: "different powers",
}
PRECISION, BUDGET, SIGMA = 1e-5, 2000, 2.0
Rows = np.ndarray[Any, np.dtype[np.float64]]
Line = dict[str, Any]


class Ended(Exception):
    """Raised at the target or at the end of the budget."""


class Counted:
    """A problem of the suite that takes rows, counts them, and ends the search."""

    def __init__(self, problem: Any, optimum: float) -> None:
        self.problem, self.optimum, self.evaluations, self.best = problem, optimum, 0, np.inf

    def __call__(self, rows: Rows) -> Rows:
        values = np.array([self.problem(np.asarray(row, dtype=np.float64)) for row in rows]) - self.optimum
        for value in values:
            self.evaluations += 1
            self.best = min(self.best, float(value))
            if self.best <= PRECISION or self.evaluations >= BUDGET * self.problem.dimension:
                raise Ended
        return values


def population(dimension: int) -> int:
    return 4 + int(3 * np.log(dimension))


def own(name: str) -> Callable[..., None]:
    def search(call: Counted, x0: Rows, seed: int) -> None:
        import escalade.strategies as ours

        es = getattr(ours, name)(x0, sigma=SIGMA, seed=seed, direction="minimize")
        while True:
            es.tell(call(es.ask().numpy()))

    return search


def pycma(call: Counted, x0: Rows, seed: int) -> None:
    import cma

    search = cma.CMAEvolutionStrategy(x0, SIGMA, {"seed": seed + 1, "verbose": -9})
    while True:
        members = search.ask()
        search.tell(members, call(np.array(members)).tolist())


def stepped(make: Callable[..., Any], name: str) -> Callable[..., None]:
    """A search of functions.py, which yields its centers."""

    def search(call: Counted, x0: Rows, seed: int) -> None:
        for _ in make(name, call, x0, seed, population=population(len(x0)), sigma=SIGMA):
            pass

    return search


@functools.cache
def _jitted(dimension: int) -> Any:
    import jax
    from evosax.algorithms import CMA_ES

    strategy = CMA_ES(population(dimension), np.zeros(dimension, np.float32))
    parameters = strategy.default_params.replace(std_init=SIGMA)
    return jax.jit(strategy.init), jax.jit(strategy.ask), jax.jit(strategy.tell), parameters


def evosax(call: Counted, x0: Rows, seed: int) -> None:
    import jax

    init, ask, tell, parameters = _jitted(len(x0))
    key = jax.random.key(seed)
    state = init(key, x0.astype(np.float32), parameters)
    while True:
        key, first, second = jax.random.split(key, 3)
        members, state = ask(first, state, parameters)
        state, _ = tell(second, members, call(np.asarray(members)).astype(np.float32), state, parameters)


def nevergrad(name: str) -> Callable[..., None]:
    def search(call: Counted, x0: Rows, seed: int) -> None:
        import nevergrad as ng

        space = ng.p.Array(init=x0).set_mutation(sigma=SIGMA)
        space.random_state.seed(seed)
        found = ng.optimizers.registry[name](space, budget=BUDGET * len(x0))
        while True:
            point = found.ask()
            found.tell(point, float(call(point.value[None])[0]))

    return search


OURS = ("CMAES", "MAES", "XNES", "SepCMAES", "CRFMNES", "VDCMA", "LMMAES", "RMES")
PEERS = {
    "pycma": pycma,
    "cmaes": stepped(functions.cyberagent, "CMA"),
    "cmaes, separable": stepped(functions.cyberagent, "SepCMA"),
    "EvoTorch CMAES": stepped(functions.evotorch, "CMAES"),
    "EvoTorch XNES": stepped(functions.evotorch, "XNES"),
    "evosax CMA_ES": evosax,
    "nevergrad CMA": nevergrad("CMA"),
    "nevergrad NGOpt": nevergrad("NGOpt"),
}
ENTRIES = {name: own(name) for name in OURS} | PEERS


def optimum(problem: Any) -> float:
    """Return the minimum, which COCO writes into a file in the working folder."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        problem._best_parameter("print")
        return float(problem(np.loadtxt("._bbob_problem_best_parameter.txt")))


def run(name: str, function: int, dimension: int, instance: int) -> Line:
    """Run once and return the result line."""
    import cocoex

    suite = cocoex.Suite("bbob", f"instances: {instance}", f"dimensions: {dimension}")
    problem = suite.get_problem_by_function_dimension_instance(function, dimension, instance)
    x0 = np.random.default_rng([function, dimension, instance]).uniform(-4, 4, dimension)
    call = Counted(problem, optimum(problem))
    error = ""
    try:
        ENTRIES[name](call, x0, instance)
    except Ended:
        pass
    except (ArithmeticError, ValueError, RuntimeError, TypeError) as raised:  # a peer's own end
        if name in OURS:
            raise
        error = f"{type(raised).__name__}: {raised}"[:80]
    found = {"reached": call.best <= PRECISION, "evaluations": call.evaluations, "best": call.best}
    return (
        {"name": name, "function": function, "dimension": dimension, "instance": instance}
        | found
        | ({"error": error} if error else {})
    )


def table(lines: list[Line]) -> str:
    """Return the best of ours and of theirs per function and dimension, by evaluations per success."""
    rows = []
    for function, dimension in itertools.product(FUNCTIONS, sorted({line["dimension"] for line in lines})):
        spent = {}
        for name in ENTRIES:
            runs = [
                line
                for line in lines
                if (line["name"], line["function"], line["dimension"]) == (name, function, dimension)
            ]
            reached = sum(line["reached"] for line in runs)
            if reached:
                spent[name] = sum(line["evaluations"] for line in runs) / reached, reached, len(runs)
        cells, best = [], []
        for names in (OURS, PEERS):
            found = {name: spent[name] for name in names if name in spent}
            name = min(found, key=lambda one: found[one][0], default="")
            best.append(found[name][0] if name else np.inf)
            cells.append(
                f"{name} {found[name][0]:,.0f} ({found[name][1]} of {found[name][2]})" if name else "none"
            )
        ratio = f"{best[0] / best[1]:.2f}" if np.isfinite(best).all() else ""
        same = {
            name: f"{spent[name][0]:,.0f}" if name in spent else "-" for name in ("CMAES", "pycma", "cmaes")
        }
        rows.append([FUNCTIONS[function], str(dimension), *cells, ratio, *same.values()])
    header = ["function", "dimension", "best of ours", "best of theirs", "ratio", "CMAES", "pycma", "cmaes"]
    return presets.markdown(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", nargs="?", default="run", choices=["run", "table"])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 10, 40])
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--names", nargs="+", default=list(ENTRIES), choices=list(ENTRIES))
    chosen = parser.parse_args()
    if chosen.what == "table":
        print(table(presets.lines_of(RESULTS)))
        return
    warnings.simplefilter("ignore")
    logging.getLogger("evotorch").setLevel(logging.ERROR)
    keys = ("name", "function", "dimension", "instance")
    there = {tuple(line[key] for key in keys) for line in presets.lines_of(RESULTS)}
    for dimension, function, name in itertools.product(chosen.dimensions, FUNCTIONS, chosen.names):
        lines = [
            run(name, function, dimension, instance)
            for instance in range(1, chosen.instances + 1)
            if (name, function, dimension, instance) not in there
        ]
        with RESULTS.open("a", encoding="utf-8") as out:
            out.writelines(json.dumps(line) + "\n" for line in lines)
        if lines:
            spent = statistics.median(line["evaluations"] for line in lines)
            errors = {line["error"] for line in lines if "error" in line}
            print(
                dimension,
                FUNCTIONS[function],
                name,
                sum(line["reached"] for line in lines),
                spent,
                *errors,
                flush=True,
            )


if __name__ == "__main__":
    main()
