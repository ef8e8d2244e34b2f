"""``escalade.optimize(noisy=True)`` compared with pycma's noise handler on three functions in 10 dimensions.

    pip install escalade cma
    python benchmarks/noisy.py --budget 10000  # prints Markdown; one core, minutes

Additive noise is normal with standard deviation 1; multiplicative noise is a normal factor with mean 1 and
standard deviation 0.5. A cell is the geometric mean of the function's true value at the returned point of 15
seeds. Every method starts at the same points, uniform in [-3, 3], with a first sigma of 1, and has the same
number of evaluations. The last columns are the digits gained by ``noisy=True``: the mean of log10(peer /
noisy=True) with its standard error.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import escalade
from escalade.strategies import CMAES
from escalade.wings.optimize.noise import noisy_population, rank_changes
from optimize import rosenbrock

DIMENSION, SEEDS = 10, 15
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sphere": lambda x: (x**2).sum(-1),
    "Rosenbrock": rosenbrock,
    "ellipsoid": lambda x: (10.0 ** (6 * np.arange(DIMENSION) / (DIMENSION - 1)) * x**2).sum(-1),
}
NOISES: dict[str, Callable[[Any, Any], Any]] = {
    "additive": lambda value, drawn: value + drawn,
    "multiplicative": lambda value, drawn: value * (1 + 0.5 * drawn),
}


class Noisy:
    """A function with noise from a generator of its own, which counts its evaluations."""

    def __init__(self, name: str, noise: str, seed: int) -> None:
        self.true, self._noise = FUNCTIONS[name], NOISES[noise]
        self._rng, self.evaluations = np.random.default_rng(seed), 0

    def __call__(self, x: Any) -> Any:
        value = self.true(np.asarray(x))
        self.evaluations += np.size(value)
        return self._noise(value, self._rng.standard_normal(np.shape(value)))


def ours(function: Noisy, x0: Any, budget: int, seed: int, **options: Any) -> escalade.Optimum:
    return escalade.optimize(function, x0, sigma=1.0, budget=budget, vectorized=True, seed=seed, **options)


def population_raised(function: Noisy, x0: Any, budget: int, seed: int) -> Any:
    """CMA-ES with the same measure of the noise, which raises the population instead of the repetitions."""
    options: dict[str, Any] = {"sigma": 1.0, "seed": seed, "direction": "minimize"}
    first, noise, factor = noisy_population(DIMENSION), 0.0, 1 + 2 / (DIMENSION + 10)
    es, wanted = CMAES(x0, first, **options), float(first)
    while function.evaluations < budget:
        members = es.ask().numpy()
        values, again = function(members), function(members[: max(2, len(members) // 10)])
        noise += 0.3 * (rank_changes(values, again) / len(values) - noise)
        values[: len(again)] = (values[: len(again)] + again) / 2
        es.tell(values)
        if noise > 0:
            es.narrow(np.full(DIMENSION, 1 + 1 / (DIMENSION + 10)))
        wanted = min(max(wanted * (factor if noise > 0 else 1 / factor), first), 100 * first)
        state, es = es.state_dict(), CMAES(x0, int(wanted), **options)
        es.load_state_dict(state)
    return es.center.numpy()


def pycma(function: Noisy, x0: Any, budget: int, seed: int, evaluations: Any = None, **more: Any) -> Any:
    import cma

    options = {"seed": seed + 1, "maxfevals": budget, "verbose": -9, "verb_log": 0, **more}
    handler = evaluations and cma.NoiseHandler(DIMENSION, evaluations)
    _, es = cma.fmin2(function, x0, 1.0, options, noise_handler=handler)
    return es.result.xfavorite  # the mean, which pycma recommends for noisy functions


OURS: dict[str, Callable[..., Any]] = {"`noisy=True`": lambda *search: ours(*search, noisy=True).best}
PEERS: dict[str, Callable[..., Any]] = {
    "best member": lambda *search: ours(*search).best,
    "center": lambda *search: ours(*search).center,
    "pycma": pycma,
    "`NoiseHandler(10)`": lambda *search: pycma(*search, [1, 1, 1]),
    "`NoiseHandler(10, [1, 1, 30])`": lambda *search: pycma(*search, [1, 1, 30]),
    "the same, `popsize=30`": lambda *search: pycma(*search, [1, 1, 30], popsize=30),
}
VARIANTS: dict[str, Callable[..., Any]] = {
    "population raised": population_raised,
    "`population=10`": lambda *search: ours(*search, noisy=True, population=10).best,
    "`population=50`": lambda *search: ours(*search, noisy=True, population=50).best,
}


def digits(way: Callable[..., Any], name: str, noise: str, budget: int) -> Any:
    """Return log10 of the true value at each seed's returned point, shape (15,)."""
    found = []
    for seed in range(SEEDS):
        function, rng = Noisy(name, noise, seed), np.random.default_rng(1000 + seed)
        answer = way(function, rng.uniform(-3, 3, DIMENSION), budget, seed)
        found.append(math.log10(function.true(answer)))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=int, default=10_000)
    parser.add_argument("--variants", action="store_true", help="other populations instead of peers")
    arguments = parser.parse_args()
    ways = OURS | (VARIANTS if arguments.variants else PEERS)
    compared = list(ways)[-2:]
    heads = ["function", "noise", *ways, *(f"digits on {way}" for way in compared)]
    print("|", " | ".join(heads), "|")
    print("|", " | ".join("---" for _ in heads), "|")
    for name, noise in itertools.product(FUNCTIONS, NOISES):
        logs = {key: digits(way, name, noise, arguments.budget) for key, way in ways.items()}
        cells = [f"{10 ** log.mean():.2g}" for log in logs.values()]
        for key in compared:
            gained = logs[key] - logs["`noisy=True`"]
            cells.append(f"{gained.mean():.2f} +- {gained.std(ddof=1) / math.sqrt(SEEDS):.2f}")
        print(f"| {name} | {noise} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
