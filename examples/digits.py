"""Handwritten digits, learnt by evolution and by backpropagation with the same network, loss and data.

    python examples/digits.py [LOSS [SEED]]

Both stop at the same training loss (0.2 by default) and are then tested on new digits. Adam needs a few dozen
gradients. Evolution is necessarily far slower: a gradient has the slope along each of the 2,410 parameters,
but a member measures the slope along a single random direction only. A population of 50 therefore gives a
rough estimate of the gradient that one backward pass computes exactly. Use evolution if there is no gradient.
"""

import sys
import time

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.functional import cross_entropy

import escalade
from escalade.policies.population.members import Members

goal = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0

images, labels = load_digits(return_X_y=True)
split = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
train_x, test_x = (torch.tensor(part, dtype=torch.float32) for part in split[:2])
train_y, test_y = (torch.tensor(part) for part in split[2:])


def network() -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))


def adam(goal: float) -> tuple[nn.Module, int]:
    """Return the trained network and the passes over the training set: one forward and one back per step."""
    module, steps = network(), 0
    optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
    while (loss := cross_entropy(module(train_x), train_y)).item() > goal:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    return module, 2 * steps


def evolution(goal: float) -> tuple[nn.Module, int]:
    """Do the same by evolution. Every member, and every evaluation of the center, is one forward pass."""
    module = network()

    def loss(members: Members) -> torch.Tensor:
        found = members(train_x.expand(len(members), *train_x.shape))
        return cross_entropy(found.mT, train_y.expand(len(members), -1), reduction="none").mean(dim=1)

    result = escalade.evolve(
        module,
        loss,
        batched=True,
        direction="minimize",
        target_return=goal,
        population=50,
        sigma=0.05,
        lr=0.05,
        generations=1000,
        seed=seed,
    )
    return module, result.summary["episodes"] + result.summary["eval_episodes_total"]


for learn in (adam, evolution):
    learn(2.2)  # a warm-up, because torch's first steps are slow
    began = time.perf_counter()
    module, passes = learn(goal)
    seconds = time.perf_counter() - began
    accuracy = (module(test_x).argmax(dim=1) == test_y).float().mean()
    print(
        f"{learn.__name__:9} {accuracy:.1%} correct; {passes:,} passes over the training set, {seconds:.3f} s"
    )
