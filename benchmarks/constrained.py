"""Targets reached by feasible points on COCO's bbob-constrained, compared with pycma's fmin_con2.

    pip install escalade cma
    pip install --no-deps coco-experiment      # cocoex; or with --target FOLDER, and FOLDER in PYTHONPATH
    python benchmarks/constrained.py run --dimension 5 --per-dimension 2000
    python benchmarks/constrained.py table

``run`` adds a line to results/constrained.jsonl for each run that is not there yet. All begin at the suite's
first point with a sigma of 2, and their own defaults for everything else. An evaluation of the function and
one of its constraints count one each. A target is a distance of a feasible point's value to the optimal one,
from 1e2 to 1e-8, five to a factor of ten.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np

import bbob
import coco
import escalade
import presets

RESULTS = Path(__file__).parent / "results" / "constrained.jsonl"
KEYS = ("dimension", "per_dimension", "restarts", "name", "function", "instance")
FUNCTIONS = (
    "sphere", "ellipsoid", "linear slope", "rotated ellipsoid", "discus", "bent cigar", "different powers",
    "rastrigin", "rotated rastrigin",
)  # fmt: skip
Line = dict[str, Any]


class Task(coco.Task):
    """A problem with constraints; only values of feasible points count."""

    def __call__(self, x: Any) -> tuple[float, Any]:
        """Return the value and the constraints."""
        x = np.array(x, dtype=np.float64)
        value, numbers = float(self.problem(x)), np.array(self.problem.constraint(x))
        self.count(2, value - self.optimum if (numbers <= 0).all() else np.inf)
        return value, numbers


def ours(task: Task) -> str:
    restarts: Any = None if task.restarts == "none" else task.restarts
    found = escalade.optimize(
        task, task.problem.initial_solution, sigma=2.0, constraints=True, restarts=restarts, seed=task.seed
    )
    return found.stop_reason


def pycma(task: Task) -> str:
    import cma

    known: list[float] = []  # fmin_con2 calls the constraints of a point, and then its function

    def constraints(x: Any) -> list[float]:
        value, numbers = task(x)
        known[:] = [value]
        return list(numbers)

    _, es = cma.fmin_con2(
        lambda x: known[0],
        task.problem.initial_solution,
        2.0,
        constraints=constraints,
        kwargs_confit={"archives": False},
        options={"seed": task.seed + 1, "verbose": -9, "verb_log": 0},
        restarts=0 if task.restarts == "none" else 9,
    )
    return ", ".join(es.stop())


SEARCHES: dict[str, Callable[[Task], str]] = {"cma-es": ours, "pycma": pycma}


def run(key: tuple[Any, ...]) -> Line:
    """Run once and return the result line."""
    import cocoex

    dimension, per_dimension, restarts, name, function, instance = key
    suite = cocoex.Suite("bbob-constrained", f"instances: {instance}", f"dimensions: {dimension}")
    problem = suite.get_problem_by_function_dimension_instance(function, dimension, instance)
    starts = np.random.default_rng(instance)  # unused: all begin at the suite's point
    task = Task(problem, bbob.optimum(problem), per_dimension * dimension, restarts, instance, starts)
    reason = ""
    with contextlib.suppress(coco.Ended):
        reason = SEARCHES[name](task)
    found = {"reached": task.reached, "evaluations": task.evaluations, "stop": reason}
    return dict(zip(KEYS, key, strict=True)) | found


def table(lines: list[Line]) -> str:
    """Return the share of targets reached by function, and the paired difference to ours."""
    rows = []
    for setting in sorted({tuple(line[key] for key in KEYS[:4]) for line in lines}):
        own = [line for line in lines if tuple(line[key] for key in KEYS[:4]) == setting]
        shares = [(line["function"], coco.at_the_end(line)) for line in own]
        cells = [*map(str, setting), f"{np.mean([share for _, share in shares]):.3f}"]
        for kind in range(len(FUNCTIONS)):
            of = [share for function, share in shares if (function - 1) // 6 == kind]
            cells.append(f"{np.mean(of):.2f}" if of else "")
        cells.append(f"{sum(share == 1 for _, share in shares)} of {len(shares)}")
        first = [line for line in lines if tuple(line[key] for key in KEYS[:4]) == (*setting[:3], "cma-es")]
        gap, error, _ = coco.paired(first, own, coco.at_the_end)
        cells.append("" if setting[3] == "cma-es" else f"{gap:+.3f} ± {error:.3f}")
        rows.append(cells)
    header = ["D", "evaluations a dimension", "restarts", "", "all", *FUNCTIONS, "solved", "cma-es less it"]
    return presets.markdown(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--dimension", type=int, default=5)
    parser.add_argument("--per-dimension", type=int, default=2000, help="evaluations a dimension")
    parser.add_argument("--restarts", default="none", choices=["none", "ipop"])
    parser.add_argument("--functions", type=int, default=54, help="the first so many")
    parser.add_argument("--instances", type=int, default=3, help="the first so many")
    parser.add_argument("--names", nargs="+", default=list(SEARCHES), choices=list(SEARCHES))
    chosen = parser.parse_args()
    known = presets.lines_of(RESULTS) if RESULTS.exists() else []
    if chosen.what == "table":
        print(table(known))
        return
    there = {tuple(line[key] for key in KEYS) for line in known}
    instances, functions = range(1, chosen.instances + 1), range(1, chosen.functions + 1)
    for instance, function, name in itertools.product(instances, functions, chosen.names):
        key = (chosen.dimension, chosen.per_dimension, chosen.restarts, name, function, instance)
        if key not in there:
            with RESULTS.open("a", encoding="utf-8") as out:
                out.write(json.dumps(run(key)) + "\n")


if __name__ == "__main__":
    main()
