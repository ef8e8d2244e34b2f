"""Restarts, bounds and cost of ``escalade.optimize``, compared with pycma.

    pip install escalade cma cmaes
    python benchmarks/optimize.py restarts --output restarts.jsonl     # one core; resumable
    python benchmarks/optimize.py table restarts.jsonl                 # its Markdown
    python benchmarks/optimize.py bounds                               # three methods for bounds
    OMP_NUM_THREADS=1 python benchmarks/optimize.py cost               # CPU time of a call and an evaluation

A run succeeds when it finds a value within 1e-8 of the minimum (1e-6 on Schwefel's function, whose values
are 4,000 and more) within 10,000 evaluations per dimension. Both begin every search at a new point drawn
uniformly from the same box, with the same first sigma and their own defaults for everything else. ``ERT`` is
the evaluations of all runs over the number of successes: the expected evaluations to a success.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import escalade
from escalade.perturbation import NoiseTable
from escalade.strategies import CMAES
from escalade.strategies.bounds import Bounds
from escalade.strategies.registry import STRATEGIES

SEEDS = 25
PER_DIMENSION = 10_000


def rastrigin(x: Any) -> Any:
    return (x**2 + 10 - 10 * np.cos(2 * math.pi * x)).sum(-1)


def schwefel(x: Any) -> Any:
    return (418.98288727243374 - x * np.sin(np.sqrt(np.abs(x)))).sum(-1)


def griewank(x: Any) -> Any:
    roots = np.sqrt(np.arange(1, x.shape[-1] + 1))
    return (x**2).sum(-1) / 4000 - np.cos(x / roots).prod(-1) + 1


def ackley(x: Any) -> Any:
    flat = -20 * np.exp(-0.2 * np.sqrt((x**2).mean(-1)))
    return flat - np.exp(np.cos(2 * math.pi * x).mean(-1)) + 20 + math.e


def rosenbrock(x: Any) -> Any:
    return (100 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1 - x[..., :-1]) ** 2).sum(-1)


@dataclass(frozen=True)
class Problem:
    function: Callable[[Any], Any]
    low: float
    """Searches begin between ``low`` and ``high``."""
    high: float
    sigma: float
    bounded: bool = False
    """Return whether that box is also the bounds."""
    precision: float = 1e-8


PROBLEMS = {
    "rastrigin": Problem(rastrigin, -5, 5, 2.0),
    "schwefel": Problem(schwefel, -500, 500, 200.0, bounded=True, precision=1e-6),
    "griewank": Problem(griewank, -600, 600, 200.0),
    "ackley": Problem(ackley, -32, 32, 10.0),
    "rosenbrock, bounded": Problem(rosenbrock, -2, 1, 0.9, bounded=True),  # the minimum is in its corner
}


def ours(problem: Problem, dimension: int, kind: str, seed: int) -> tuple[float, int, int]:
    found = escalade.optimize(
        problem.function,
        lambda rng: rng.uniform(problem.low, problem.high, dimension),
        sigma=problem.sigma,
        bounds=(problem.low, problem.high) if problem.bounded else None,
        budget=PER_DIMENSION * dimension,
        target=problem.precision,
        restarts=kind,
        vectorized=True,
        seed=seed,
    )
    return found.best_fitness, found.evaluations, found.restarts


def pycma(problem: Problem, dimension: int, kind: str, seed: int) -> tuple[float, int, int]:
    import cma

    rng = np.random.default_rng(seed)
    starts: list[Any] = []

    def x0() -> Any:
        starts.append(rng.uniform(problem.low, problem.high, dimension))
        return starts[-1]

    options = {
        "seed": seed + 1,  # 0 is "from the clock"
        "ftarget": problem.precision,
        "maxfevals": PER_DIMENSION * dimension,
        "verbose": -9,
        "verb_log": 0,
    }
    if problem.bounded:
        options["bounds"] = [problem.low, problem.high]
    _, es = cma.fmin2(
        problem.function,
        x0,
        problem.sigma,
        options,
        restarts=9 if kind == "ipop" else 1000,
        bipop=kind == "bipop",
    )
    return float(es.result.fbest), int(es.result.evaluations), len(starts) - 1


PEERS = {"escalade": ours, "pycma": pycma}


def restarts(output: Path, functions: list[str], dimensions: list[int]) -> None:
    """Run the restarts missing in ``output``, and append a line of JSON per run."""
    done = [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []
    known = {(r["problem"], r["dimension"], r["kind"], r["seed"], r["who"]) for r in done}
    for dimension, seed, name, kind, who in itertools.product(
        dimensions, range(SEEDS), functions, ("ipop", "bipop"), PEERS
    ):
        if (name, dimension, kind, seed, who) in known:
            continue
        best, evaluations, count = PEERS[who](PROBLEMS[name], dimension, kind, seed)
        row = {
            "problem": name, "dimension": dimension, "kind": kind, "seed": seed, "who": who,
            "success": best <= PROBLEMS[name].precision, "best": best,
            "evaluations": evaluations, "restarts": count,
        }  # fmt: skip
        with output.open("a") as file:
            file.write(json.dumps(row) + "\n")


def table(path: Path) -> None:
    """Print the results of :func:`restarts` in Markdown."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    print("| function | dimension | restarts | runs | successes | pycma's | ERT | pycma's | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for dimension, name, kind in itertools.product((10, 20), PROBLEMS, ("ipop", "bipop")):
        mine = [r for r in rows if (r["dimension"], r["problem"], r["kind"]) == (dimension, name, kind)]
        paired = {r["seed"] for r in mine if r["who"] == "escalade"} & {
            r["seed"] for r in mine if r["who"] == "pycma"
        }
        cells, expected = [], []
        for who in PEERS:
            runs = [r for r in mine if r["who"] == who and r["seed"] in paired]
            successes = sum(r["success"] for r in runs)
            cells.append(str(successes))
            expected.append(sum(r["evaluations"] for r in runs) / successes if successes else math.inf)
        if paired:
            times = [f"{e:,.0f}" if math.isfinite(e) else "none" for e in expected]
            ratio = f"{expected[0] / expected[1]:.2f}" if all(map(math.isfinite, expected)) else "-"
            head = f"| {name} | {dimension} | {kind} | {len(paired)} |"
            print(head, f"{cells[0]} | {cells[1]} | {times[0]} | {times[1]} | {ratio} |")


# --- bounds -------------------------------------------------------------------------------------------


def corner(x: Any) -> Any:
    """A sphere whose free minimum is outside: the best point in the box is its corner, with value 0."""
    return ((x + 1) ** 2).sum(-1) - x.shape[-1]


def edge(x: Any) -> Any:
    """An ellipsoid with half of its minimum on a bound and half of it inside."""
    shift = np.where(np.arange(x.shape[-1]) % 2, 0.0, 0.3)
    return (10.0 ** (4 * np.arange(x.shape[-1]) / (x.shape[-1] - 1)) * (x - shift) ** 2).sum(-1)


def inner(x: Any) -> Any:
    """A sphere with its minimum well inside."""
    return ((x - 0.4) ** 2).sum(-1)


def reflected(x: Any) -> Any:
    phase = np.mod(x, 2)
    return np.where(phase > 1, 2 - phase, phase)


BOUNDED = {"inner": inner, "corner": corner, "edge": edge, "rosenbrock": lambda x: rosenbrock(3 * x - 2)}
SETTINGS: dict[str, dict[str, Any]] = {
    "cma-es": {"population": 10},
    "sep-cma-es": {"population": 10},
    "snes": {"population": 20},
    "cem": {"population": 60, "elite": 0.3},
    "pgpe": {"population": 40},
}


def in_the_box(way: str, strategy: str, function: Any, seed: int, table: NoiseTable) -> float:
    """Return evaluations until the best is within 1e-6 of the minimum in [0, 1]^10; infinity after 50,000."""
    box = Bounds((0, 1), 10)
    start = np.random.default_rng(seed).uniform(0.2, 0.8, 10)
    start = box.invert(start) if way == "transformation" else start
    options = {"sigma": 0.3, "seed": seed, "direction": "minimize"} | SETTINGS[strategy]
    es = STRATEGIES[strategy].load()(start, perturbation=table, **options)
    for generation in range(50_000 // es.population_size):
        free = es.ask().numpy()
        if way == "transformation":
            values = function(box.apply(free))
        elif way == "reflection":
            values = function(reflected(free))
        else:  # to the nearest point of the box, and a penalty for the way there
            near = np.clip(free, 0, 1)
            inside = function(near)
            spread = np.subtract(*np.percentile(inside, [75, 25]))
            values = inside + max(spread, 1e-12) * ((free - near) ** 2).sum(-1) / es.sigma**2
        es.tell(values)
        best = values.min() if way != "clipping" else inside.min()
        if best <= 1e-6:
            return (generation + 1) * es.population_size
    return math.inf


def bounds(strategies: list[str]) -> None:
    """Print a table of methods for bounds."""
    ways, noise = ("transformation", "reflection", "clipping"), NoiseTable(0, 2**22)
    print("| strategy | function |", " | ".join(ways), "|")
    print("| --- | --- |", " | ".join("---" for _ in ways), "|")
    for strategy, (name, function) in itertools.product(strategies, BOUNDED.items()):
        cells = []
        for way in ways:
            runs = [in_the_box(way, strategy, function, seed, noise) for seed in range(7)]
            reached = sum(map(math.isfinite, runs))
            median = statistics.median(runs)
            cells.append(
                f"{median:,.0f} ({reached}/7)" if math.isfinite(median) else f"not reached ({reached}/7)"
            )
        print(f"| {strategy} | {name} |", " | ".join(cells), "|", flush=True)


def cheap(x: Any) -> float:
    return float(x @ x)


def by_optimize(dimension: int, budget: int, seed: int) -> int:
    options = {"sigma": 2.0, "budget": budget, "seed": seed, "tolerance": 1e-300}
    return escalade.optimize(cheap, np.full(dimension, 3.0), **options).evaluations


def by_ask_and_tell(dimension: int, budget: int, seed: int) -> int:
    es, evaluations = CMAES(np.full(dimension, 3.0), sigma=2.0, seed=seed, direction="minimize"), 0
    while evaluations < budget:
        members = es.ask()
        es.tell([cheap(x) for x in members.numpy()])
        evaluations += len(members)
    return evaluations


def by_pycma(dimension: int, budget: int, seed: int, *, alone: bool = False) -> int:
    import cma

    options = {"seed": seed + 1, "verbose": -9, "verb_log": 0, "maxfevals": budget, "tolx": 0, "tolfun": 0}
    options |= {"tolfunhist": 0, "tolflatfitness": 10**9, "tolstagnation": 10**9}
    if not alone:
        return int(cma.fmin2(cheap, np.full(dimension, 3.0), 2.0, options)[1].countevals)
    es = cma.CMAEvolutionStrategy(np.full(dimension, 3.0), 2.0, options)
    while es.countevals < budget:
        members = es.ask()
        es.tell(members, [cheap(x) for x in members])
    return int(es.countevals)


def by_cmaes(dimension: int, budget: int, seed: int) -> int:
    import cmaes

    es, evaluations = cmaes.CMA(np.full(dimension, 3.0), 2.0, seed=seed), 0
    while evaluations < budget:
        members = [es.ask() for _ in range(es.population_size)]
        es.tell([(x, cheap(x)) for x in members])
        evaluations += len(members)
    return evaluations


WAYS: dict[str, Callable[[int, int, int], int]] = {
    "optimize": by_optimize,
    "fmin2 of pycma": by_pycma,
    "ask and tell": by_ask_and_tell,
    "ask and tell of pycma": partial(by_pycma, alone=True),
    "ask and tell of cmaes": by_cmaes,
}


def cost(dimensions: list[int], budget: int, rounds: int) -> None:
    """Print CPU times of calls with 12 evaluations, and per evaluation in long runs."""
    print(
        "| dimension | variant | call of 12, ms | per evaluation, us | relative to pycma |\n"
        + "| --- " * 5
        + "|"
    )
    for dimension in dimensions:
        calls: dict[str, list[float]] = {name: [] for name in WAYS}
        evaluations: dict[str, list[float]] = {name: [] for name in WAYS}
        for seed, (name, way) in itertools.product(range(rounds), WAYS.items()):
            for size, times in ((12, calls), (budget, evaluations)):
                began = time.process_time()
                count = way(dimension, size, seed)
                spent = time.process_time() - began
                times[name].append(1e3 * spent if size == 12 else 1e6 * spent / count)
        for name in WAYS:
            peer = "fmin2 of pycma" if name in ("optimize", "fmin2 of pycma") else "ask and tell of pycma"
            ratios = [a / b for a, b in zip(evaluations[name], evaluations[peer], strict=True)]
            medians = (statistics.median(part) for part in (calls[name], evaluations[name], ratios))
            print(f"| {dimension} | {name} | {{:.1f}} | {{:.0f}} | {{:.2f}} |".format(*medians), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("restarts")
    running.add_argument("--output", type=Path, required=True)
    running.add_argument("--functions", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    running.add_argument("--dimensions", nargs="+", type=int, default=[10, 20])
    commands.add_parser("table").add_argument("path", type=Path)
    commands.add_parser("bounds").add_argument(
        "--strategies", nargs="+", default=list(SETTINGS), choices=SETTINGS
    )
    costing = commands.add_parser("cost")
    costing.add_argument("--dimensions", nargs="+", type=int, default=[2, 5, 10, 20, 40])
    costing.add_argument("--budget", type=int, default=4000)
    costing.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    if arguments.command == "restarts":
        restarts(arguments.output, arguments.functions, arguments.dimensions)
    elif arguments.command == "table":
        table(arguments.path)
    elif arguments.command == "cost":
        cost(arguments.dimensions, arguments.budget, arguments.rounds)
    else:
        bounds(arguments.strategies)


if __name__ == "__main__":
    main()
