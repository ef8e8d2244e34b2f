"""OpenAI-ES with and without noise along its past gradients, the idea of ASEBO.

    python benchmarks/active_subspace.py functions
    python benchmarks/active_subspace.py control

Choromanski et al. 2019, "From complexity to simplicity: adaptive ES-active subspaces for blackbox
optimization", arXiv 1903.04268: the noise lies in the span of the last estimated gradients with a share that
depends on the part of the newest gradient in that span. Here the number of members is fixed, as with several
workers, and the newest ``guides`` gradients replace the principal components of all. Both sides use the
same Adam, sigma, population and utilities; on functions each uses the best of three step sizes.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from typing import Any

import numpy as np

import escalade
from escalade.strategies import GuidedES, OpenAIES
from escalade.strategies.gaussian import differences

SEEDS, RATES = (1, 2, 3, 4, 5), (0.02, 0.1, 0.5)
Rows = np.ndarray[Any, np.dtype[np.float64]]


class ActiveSubspaceES(GuidedES):
    """Guided ES whose surrogate gradients are the estimates of its own last generations."""

    def __init__(
        self, x0: Any, population: int = 64, sigma: float = 0.1, *, guides: int = 8, **more: Any
    ) -> None:
        super().__init__(x0, population, sigma, surrogate=self._latest, guides=guides, alpha=1.0, **more)
        self._estimate = self.center.clone().zero_()

    def _latest(self, center: Any) -> Any:
        return self._estimate.clone()

    def update(self, fitness: Any) -> None:
        gradient = self.noise_sum(differences(self.shaping(fitness)))
        basis = np.linalg.qr(self.gradients.T)[0] if self.gradients.any() else np.zeros((self.dimension, 1))
        inside = basis @ (basis.T @ gradient.numpy())
        super().update(fitness)
        self._estimate = gradient
        if self.generation >= self.guides:
            within, beyond = np.linalg.norm(inside), np.linalg.norm(gradient.numpy() - inside)
            self.alpha = float(np.clip(beyond / (within + beyond), 0.05, 1.0))


def active(x: Rows) -> Rows:
    """Squares of the first ten numbers; the others change nothing."""
    return np.asarray(((x[:, :10] - 1) ** 2).sum(axis=1))


def ellipsoid(x: Rows) -> Rows:
    """Squares weighted from 1 to 1,000."""
    d = x.shape[1]
    return np.asarray((x - 1) ** 2 @ 10.0 ** (3 * np.arange(d) / (d - 1)))


def rosenbrock(x: Rows) -> Rows:
    return np.asarray((100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(axis=1))


def functions() -> None:
    """Print the median of the last values at the center after 400 generations of 20 members."""
    print(
        "| function | dimension | OpenAI-ES | with its own gradients | ratio |"
        "\n| --- | --- | --- | --- | --- |"
    )
    for function, dimension in itertools.product((active, ellipsoid, rosenbrock), (100, 1000)):
        found = []
        for kind in (OpenAIES, ActiveSubspaceES):
            by_rate = []
            for rate in RATES:
                values = []
                for seed in SEEDS:
                    es = kind(np.zeros(dimension), 20, 0.02, lr=rate, seed=seed, direction="minimize")
                    for _ in range(400):
                        es.tell(function(es.ask().numpy()))
                    values.append(float(function(es.center.numpy()[None])[0]))
                by_rate.append(statistics.median(values))
            found.append(min(by_rate))
        cells = [f"{value:.3g}" for value in found]
        print(f"| {function.__name__} | {dimension} | {cells[0]} | {cells[1]} | {found[1] / found[0]:.2f} |")


def control() -> None:
    """Print returns of a linear policy after 300,000 env steps, population 32, three seeds."""
    print("| task | OpenAI-ES | with its own gradients |\n| --- | --- | --- |")
    for task in ("Swimmer-v5", "HalfCheetah-v5"):
        cells = []
        for strategy in ("openai-es", "active_subspace:ActiveSubspaceES"):
            returns = []
            for seed in SEEDS[:3]:
                options = {
                    "preset": None,
                    "strategy": strategy,
                    "population": 32,
                    "sigma": 0.1,
                    "lr": 0.1,
                    "seed": seed,
                }
                options |= {"env_steps": 300_000, "workers": 0, "verbose": False}
                returns.append(escalade.train(task, **options).summary["eval_return_mean"])
            cells.append(", ".join(f"{value:.0f}" for value in sorted(returns)))
        print(f"| {task} | {cells[0]} | {cells[1]} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["functions", "control"])
    {"functions": functions, "control": control}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
