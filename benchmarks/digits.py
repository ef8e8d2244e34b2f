"""Handwritten digits by Adam and by evolution strategies with noise of several ranks: two networks.

    python benchmarks/digits.py [--seeds 0 1 2]

Every learner stops at a training loss of 0.2, evolution strategies after 3,000 generations at the latest, and
is tested on unseen digits. Prints a Markdown table. Passes are over the training set: a member's pass, a
test of the center and a backward pass each count as one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.functional import cross_entropy

import escalade
from escalade.policies.population.members import Members

GOAL = 0.2
NOISES = ("full", "low-rank:1", "low-rank:4")
images, labels = load_digits(return_X_y=True)
split = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
train_x, test_x = (torch.tensor(part, dtype=torch.float32).reshape(-1, 1, 8, 8) for part in split[:2])
train_y, test_y = (torch.tensor(part) for part in split[2:])


def perceptron() -> nn.Module:
    """Two hidden layers of 128 units."""
    layers = [nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 10)]
    return nn.Sequential(nn.Flatten(), *layers)


def convolutions() -> nn.Module:
    """Two convolutions, and a linear layer."""
    first = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU()]
    second = [nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(512, 10))


def adam(module: nn.Module) -> int:
    """Passes over the training set that it took."""
    optimizer, passes = torch.optim.Adam(module.parameters(), lr=0.005), 0
    while (loss := cross_entropy(module(train_x), train_y)).item() > GOAL:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        passes += 2
    return passes


def evolution(module: nn.Module, noise: str, seed: int) -> int:
    """Passes over the training set that it took."""

    def loss(members: Members) -> torch.Tensor:
        found = members(train_x.expand(len(members), *train_x.shape))
        return cross_entropy(found.mT, train_y.expand(len(members), -1), reduction="none").mean(dim=1)

    summary = escalade.evolve(
        module,
        loss,
        batched=True,
        perturbation=noise,
        direction="minimize",
        target_return=GOAL,
        population=64,
        sigma=0.05,
        lr=0.02,
        generations=3000,
        seed=seed,
    ).summary
    return int(summary["episodes"] + summary["eval_episodes_total"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    seeds = parser.parse_args().seeds
    print("| network | parameters | learner | test accuracy | passes | seconds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, make in (("64-128-128-10", perceptron), ("two convolutions", convolutions)):
        count = sum(part.numel() for part in make().parameters())
        learners: dict[str, Callable[[nn.Module, int], int]] = {"Adam": lambda module, seed: adam(module)}
        for noise in NOISES:
            learners[noise] = lambda module, seed, noise=noise: evolution(module, noise, seed)
        for learner, learn in learners.items():
            found = []
            for seed in seeds:
                torch.manual_seed(seed)
                module, began = make(), time.perf_counter()
                passes = learn(module, seed)
                seconds = time.perf_counter() - began
                right = (module(test_x).argmax(dim=1) == test_y).float().mean().item()
                found.append((right, passes, seconds))
            accuracy, passes, seconds = np.median(found, axis=0)
            print(
                f"| {name} | {count:,} | {learner} | {accuracy:.1%} | {passes:,.0f} | {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
