"""Every strategy on Rastrigin (many valleys) and Rosenbrock (one bent valley), with a plot of their progress.

python examples/functions.py [PICTURE [GENERATIONS]]
"""

import sys

import matplotlib as mpl
import torch
from torch import Tensor

from escalade.strategies.registry import STRATEGIES

mpl.use("agg")
import matplotlib.pyplot as plt

DIMENSION, POPULATION = 10, 60
picture = sys.argv[1] if len(sys.argv) > 1 else "functions.png"
generations = int(sys.argv[2]) if len(sys.argv) > 2 else 500


def rastrigin(x: Tensor) -> Tensor:
    return 10 * x.shape[1] + (x**2 - 10 * torch.cos(2 * torch.pi * x)).sum(dim=1)


def rosenbrock(x: Tensor) -> Tensor:
    return (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(dim=1)


classes = {entry.class_name: entry.load() for entry in STRATEGIES.values()}

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for axis, function in zip(axes, (rastrigin, rosenbrock), strict=True):
    print(function.__name__)
    for name, kind in classes.items():
        es = kind(torch.full((DIMENSION,), 2.5), POPULATION, sigma=0.3, direction="minimize")
        for _ in range(generations):
            es.tell(function(es.ask()))
        best = torch.tensor(es.result.history[:, 0]).cummin(dim=0).values.clamp(min=1e-6)
        axis.semilogy(torch.arange(1, generations + 1) * POPULATION, best, label=name)
        print(f"  {name:14} {es.result.best_fitness:.3g} after {generations * POPULATION:,} evaluations")
    axis.set(title=f"{function.__name__.title()}, {DIMENSION} dimensions", xlabel="evaluations")
axes[0].set_ylabel("best so far")
axes[1].legend()
figure.savefig(picture, dpi=120)
print(f"plot written to {picture}")
