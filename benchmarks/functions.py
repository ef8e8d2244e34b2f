"""Evaluations to a target on five functions, compared with other implementations.

    pip install escalade evosax evotorch cmaes
    python benchmarks/functions.py --output table.md

Each strategy and its peer start from the same point with the same population, sigma, step size and
shaping, for eleven starts drawn from the seeds. A run ends when the function at the center is at most the
target (the center is not counted as an evaluation), or at the maximum number of generations.
"""

from __future__ import annotations

import argparse
import functools
import logging
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import escalade.strategies as ours
from escalade.perturbation import NoiseTable, table_size

Call = Callable[[Any], Any]
"""Rows of shape (n, dimension) to values of shape (n,)."""

# --- the functions: rows to values, for numpy and jax arrays alike -----------------------------------


def sphere(x: Any) -> Any:
    """Sum of squares."""
    return (x**2).sum(-1)


def ellipsoid(x: Any) -> Any:
    """Squares weighted from 1 to 1e6, in equal steps of the logarithm."""
    d = x.shape[-1]
    return (x**2 * 10.0 ** (6 * np.arange(d, dtype=np.float32) / (d - 1))).sum(-1)


def rosenbrock(x: Any) -> Any:
    """A bent valley; the minimum is at (1, ..., 1)."""
    return (100 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1 - x[..., :-1]) ** 2).sum(-1)


def rastrigin(x: Any) -> Any:
    """A bowl with a dent at every point of the integer grid."""
    return (x**2 + 10 - 10 * x.__array_namespace__().cos(2 * math.pi * x)).sum(-1)


def ackley(x: Any) -> Any:
    """A flat, dented plain with one funnel."""
    xp = x.__array_namespace__()
    root, waves = xp.sqrt((x**2).mean(-1)), xp.cos(2 * math.pi * x).mean(-1)
    return 20 + math.e - 20 * xp.exp(-0.2 * root) - xp.exp(waves)


@dataclass(frozen=True)
class Function:
    """A function to minimize, with its targets by dimension.

    ``coarse`` targets are for strategies that cannot converge because they keep their sigma or speed.
    """

    call: Call
    fine: dict[int, float]
    coarse: dict[int, float]


FUNCTIONS = {
    "sphere": Function(sphere, {10: 1e-6, 100: 1e-6}, {10: 1e-1, 100: 1.0}),
    "ellipsoid": Function(ellipsoid, {10: 1e-3, 100: 1.0}, {10: 1e2, 100: 1e4}),
    "rosenbrock": Function(rosenbrock, {10: 1.0, 100: 95.0}, {10: 9.0, 100: 150.0}),
    "rastrigin": Function(rastrigin, {10: 40.0, 100: 400.0}, {10: 40.0, 100: 800.0}),
    "ackley": Function(ackley, {10: 1e-3, 100: 1e-3}, {10: 0.5, 100: 1.0}),
}


def start(dimension: int, seed: int) -> np.ndarray:
    """Return the first center of run ``seed``, uniform in [-2, 2)."""
    return np.random.default_rng(seed).uniform(-2, 2, dimension).astype(np.float32)


# --- one run: an iterator over the centers, one for each generation ------------------------------------

Centers = Iterator[np.ndarray]


@dataclass(frozen=True)
class Entry:
    """A strategy, its peer, and their common settings by dimension."""

    peer: str
    mine: Callable[..., ours.Strategy]
    theirs: Callable[..., Centers]
    settings: dict[int, dict[str, Any]]
    fine: bool = True
    targets: dict[str, dict[int, float]] = field(default_factory=dict)  # of functions without either
    generations: dict[int, int] = field(default_factory=lambda: {10: 2000, 100: 1000})

    def target(self, name: str, dimension: int) -> float:
        function = FUNCTIONS[name]
        default = function.fine if self.fine else function.coarse
        return self.targets.get(name, default)[dimension]


_TABLES: dict[tuple[int, int], NoiseTable] = {}


def run_mine(entry: Entry, call: Call, x0: np.ndarray, seed: int, **settings: Any) -> Centers:
    if (key := (seed, len(x0))) not in _TABLES:
        _TABLES[key] = NoiseTable(seed, table_size(len(x0)))
    strategy = entry.mine(x0, seed=seed, direction="minimize", perturbation=_TABLES[key], **settings)
    while True:
        strategy.tell(call(strategy.ask().numpy().astype(np.float64)))
        yield strategy.center.numpy()


def openai_es(x0: np.ndarray, population: int, sigma: float, lr: float, **common: Any) -> ours.Strategy:
    return ours.OpenAIES(x0, population, sigma, optimizer=partial(torch.optim.Adam, lr=lr), **common)


def pgpe(x0: np.ndarray, population: int, sigma: float, lr: float, **common: Any) -> ours.Strategy:
    return ours.PGPE(x0, population, sigma, optimizer=partial(ours.ClipUp, lr=lr), **common)


@functools.cache
def _compiled(
    name: str,
    call: Call,
    dimension: int,
    population: int,
    sigma: float,
    lr: float | None,
    elite: float | None,
) -> tuple[Any, Any]:
    """Evosax's first state and one generation of it; compiled once for all seeds."""
    import jax
    import optax
    from evosax.algorithms import distribution_based

    extra: dict[str, Any] = {}
    if lr is not None:
        descent = optax.adam if name == "Open_ES" else optax.sgd
        extra = {"optimizer": descent(lr), "std_schedule": optax.constant_schedule(sigma)}
    strategy = getattr(distribution_based, name)(population, np.zeros(dimension, np.float32), **extra)
    if elite is not None:
        strategy.elite_ratio = elite
    parameters = strategy.default_params
    if hasattr(parameters, "std_init"):
        parameters = parameters.replace(std_init=sigma)

    @jax.jit
    def advance(key: Any, state: Any) -> Any:
        key, ask, tell = jax.random.split(key, 3)
        members, state = strategy.ask(ask, state, parameters)
        state, _ = strategy.tell(tell, members, call(members), state, parameters)
        return key, state

    return lambda key, x0: strategy.init(key, x0, parameters), advance


def evosax(
    name: str,
    call: Call,
    x0: np.ndarray,
    seed: int,
    *,
    population: int,
    sigma: float,
    lr: float | None = None,
    elite: float | None = None,
) -> Centers:
    import jax

    first, advance = _compiled(name, call, len(x0), population, sigma, lr, elite)
    key = jax.random.key(seed)
    state = first(key, x0)
    while True:
        key, state = advance(key, state)
        yield np.asarray(state.mean)


def evotorch(
    name: str, call: Call, x0: np.ndarray, seed: int, *, population: int, sigma: float, **more: Any
) -> Centers:
    from evotorch import Problem, algorithms

    logging.getLogger("evotorch.core").setLevel(logging.WARNING)

    def values(members: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.asarray(call(members.numpy().astype(np.float64))))

    problem = Problem(
        "min",
        values,
        solution_length=len(x0),
        initial_bounds=(-1, 1),
        vectorized=True,
        dtype=torch.float32,
        eval_dtype=torch.float64,
        seed=seed,
    )
    if name == "PGPE":
        lr = more.pop("lr")
        more = {"center_learning_rate": lr, "stdev_learning_rate": 0.1, "optimizer": "clipup"}
        more["optimizer_config"] = {"max_speed": 2 * lr, "momentum": 0.9}
    if name == "CEM":
        more = {"parenthood_ratio": more["elite"]}
    search = getattr(algorithms, name)(
        problem, popsize=population, stdev_init=sigma, center_init=torch.from_numpy(x0), **more
    )
    while True:
        search.step()
        yield search.status["center"].numpy()


def cyberagent(name: str, call: Call, x0: np.ndarray, seed: int, *, population: int, sigma: float) -> Centers:
    import cmaes

    search = getattr(cmaes, name)(x0.astype(np.float64), sigma, seed=seed, population_size=population)
    while True:
        members = np.stack([search.ask() for _ in range(population)])
        search.tell([(x, float(v)) for x, v in zip(members, call(members), strict=True)])
        yield search.mean


def both(**settings: Any) -> dict[int, dict[str, Any]]:
    """Settings by dimension: a pair is (10 dimensions, 100 dimensions)."""
    return {
        d: {k: v[i] if isinstance(v, tuple) else v for k, v in settings.items()}
        for i, d in enumerate((10, 100))
    }


def ars(x0: np.ndarray, population: int, elite: float, **common: Any) -> ours.Strategy:
    return ours.ARS(x0, population, top_directions=int(elite * population // 2), **common)


ENTRIES = {
    "OpenAIES": Entry(
        "evosax Open_ES",
        openai_es,
        partial(evosax, "Open_ES"),
        both(population=(20, 100), sigma=0.1, lr=0.05),
        fine=False,
    ),
    "ARS": Entry(
        "evosax ARS",
        ars,
        partial(evosax, "ARS"),
        both(population=(20, 100), sigma=0.1, lr=(0.05, 0.1), elite=0.5),
        fine=False,
    ),
    "SimpleGaussian": Entry(
        "evosax SimpleES",
        ours.SimpleGaussian,
        partial(evosax, "SimpleES"),
        both(population=(20, 100), sigma=1.0, elite=0.5),
    ),
    "CEM": Entry(
        "EvoTorch CEM",
        ours.CEM,
        partial(evotorch, "CEM"),
        both(population=(100, 400), sigma=1.0, elite=0.25),
        # It stops in the valley, where depends on luck: so many runs end on either side of the fine target.
        targets={"rosenbrock": {10: 30.0, 100: 300.0}},
    ),
    "SNES": Entry(
        "EvoTorch SNES",
        ours.SNES,
        partial(evotorch, "SNES"),
        both(population=(20, 100), sigma=1.0),
    ),
    "PGPE": Entry(
        "EvoTorch PGPE",
        pgpe,
        partial(evotorch, "PGPE"),
        both(population=(50, 200), sigma=0.5, lr=(0.05, 0.15)),
        fine=False,
    ),
    "SepCMAES": Entry(
        "cmaes SepCMA",
        ours.SepCMAES,
        partial(cyberagent, "SepCMA"),
        both(population=(10, 17), sigma=1.0),
        generations={10: 6000, 100: 3000},
    ),
    "CMAES": Entry(
        "cmaes CMA",
        ours.CMAES,
        partial(cyberagent, "CMA"),
        both(population=(10, 17), sigma=1.0),
    ),
}


@dataclass(frozen=True)
class Score:
    """Median over the seeds: evaluations to the target (inf: not reached), and the last value."""

    evaluations: float
    value: float

    def __str__(self) -> str:
        if math.isfinite(self.evaluations):
            return f"{self.evaluations:,.0f}"
        return f"not reached ({self.value:.3g})"


def score(runs: list[Centers], call: Call, target: float, population: int, generations: int) -> Score:
    used, values = [], []
    for centers in runs:
        reached, value = math.inf, math.nan
        for generation in range(1, generations + 1):
            value = float(call(np.asarray(next(centers), dtype=np.float64)))
            if value <= target:
                reached = generation * population
                break
        used.append(reached)
        values.append(value)
    return Score(statistics.median(used), statistics.median(values))


def compare(mine: Score, theirs: Score) -> str:
    """Compare ours with theirs: by evaluations if both reach the target, else by the last values."""
    if math.isfinite(mine.evaluations) and math.isfinite(theirs.evaluations):
        return f"{mine.evaluations / theirs.evaluations:.2f}"
    if math.isfinite(mine.evaluations) or math.isfinite(theirs.evaluations):
        return "ours only" if math.isfinite(mine.evaluations) else "theirs only"
    return f"{mine.value / theirs.value:.2f} (value)"


HEADER = (
    "| strategy | function | dimension | target | Escalade | peer | ratio |",
    "|---|---|---:|---:|---:|---:|---:|",
)


def rows(strategies: list[str], functions: list[str], dimensions: list[int], seeds: int) -> Iterator[str]:
    for name in strategies:
        entry = ENTRIES[name]
        for function in functions:
            for d in dimensions:
                settings, f = entry.settings[d], FUNCTIONS[function]
                starts = [(start(d, seed), seed) for seed in range(seeds)]
                cap, target = entry.generations[d], entry.target(function, d)
                began = time.perf_counter()
                mine = [run_mine(entry, f.call, x0, seed, **settings) for x0, seed in starts]
                left = score(mine, f.call, target, settings["population"], cap)
                middle = time.perf_counter()
                theirs = [entry.theirs(f.call, x0, seed, **settings) for x0, seed in starts]
                right = score(theirs, f.call, target, settings["population"], cap)
                spent = f"{middle - began:.0f} + {time.perf_counter() - middle:.0f} s"
                cells = (
                    f"{name} ({entry.peer})",
                    function,
                    d,
                    f"{target:g}",
                    left,
                    right,
                    compare(left, right),
                )
                row = "| " + " | ".join(str(cell) for cell in cells) + " |"
                print(row, spent, flush=True)
                yield row


def main() -> None:
    """Run the requested measurements, print each row, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--strategies", nargs="+", default=list(ENTRIES), choices=list(ENTRIES))
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS), choices=list(FUNCTIONS))
    parser.add_argument("--dimensions", nargs="+", type=int, default=[10, 100], choices=[10, 100])
    parser.add_argument("--seeds", type=int, default=11)
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    table = list(rows(arguments.strategies, arguments.functions, arguments.dimensions, arguments.seeds))
    if arguments.output:
        arguments.output.write_text("\n".join([*HEADER, *table]) + "\n")


if __name__ == "__main__":
    main()
