"""A flight planned with the gradient of a wrong model, and put right by evolution.

    python examples/guided.py [--generations 100] [--guides 10]

A drone has 100 time steps to reach a goal and stop there; a plan is a force along x and y for each. The
planner's model knows neither drag nor wind, but torch has its gradient. The world has both, and no gradient.
``model`` follows the model's gradient, and misses the goal in the world. ``openai-es`` asks the world alone.
``guided-es`` asks the world in the same way, with half the variance of its noise along the model's gradient
(Maheswaranathan et al. 2019, arXiv 1806.10230): the wrong model says where to look, the world what is true.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor

from escalade.strategies import GuidedES, OpenAIES, Strategy

STEPS, SECONDS = 100, 0.05
GOAL, WIND, DRAG = torch.tensor([4.0, 3.0]), torch.tensor([-1.0, -0.5]), 0.3
LR = 0.05


def cost(plans: Tensor, wind: Tensor, drag: float) -> Tensor:
    """What flights cost that end far from the goal, fast, or after large forces; plans (n, 200) to (n,)."""
    forces = plans.reshape(-1, STEPS, 2)
    place, speed = torch.zeros(len(plans), 2), torch.zeros(len(plans), 2)
    for force in forces.unbind(dim=1):
        air = speed - wind
        speed = speed + SECONDS * (force - drag * air.norm(dim=1, keepdim=True) * air)
        place = place + SECONDS * speed
    missed = (place - GOAL).square().sum(dim=1) + speed.square().sum(dim=1)
    return missed + 0.01 * SECONDS * forces.square().sum(dim=(1, 2))


def world(plans: Tensor) -> Tensor:
    """The true cost, which has no gradient here."""
    return cost(plans, WIND, DRAG)


def slope_of_the_model(plan: Tensor) -> Tensor:
    """The gradient of the cost in a world without wind and drag, shape (200,)."""
    plan.requires_grad_()
    return torch.autograd.grad(cost(plan[None], torch.zeros(2), 0.0).sum(), plan)[0]


def follow_the_model(generations: int) -> Tensor:
    """The plan that gradient descent finds within the model."""
    plan = torch.zeros(2 * STEPS)
    adam = torch.optim.Adam([plan], lr=LR)
    for _ in range(generations):
        plan.grad = slope_of_the_model(plan.detach().clone())
        adam.step()
    return plan


def evolve(es: Strategy, generations: int) -> Tensor:
    """The plan that a strategy finds within the world."""
    for _ in range(generations):
        es.tell(world(es.ask()))
    return es.center


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generations", type=int, default=100)
    parser.add_argument("--guides", type=int, default=10, help="past gradients of the model that are kept")
    given = parser.parse_args()
    generations = given.generations
    start = torch.zeros(2 * STEPS)
    options = {"population": 10, "sigma": 0.02, "lr": LR, "shaping": "raw", "direction": "minimize"}
    plans = {
        "nothing": start,
        "model": follow_the_model(generations),
        "openai-es": evolve(OpenAIES(start, **options), generations),
        "guided-es": evolve(
            GuidedES(start, surrogate=slope_of_the_model, guides=given.guides, **options), generations
        ),
    }
    for name, plan in plans.items():
        print(f"{name:10} costs {float(world(plan[None])):6.2f} in the world")


if __name__ == "__main__":
    main()
