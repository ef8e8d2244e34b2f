"""A flight planned with the gradient of a wrong model, and corrected by evolution.

    python examples/guided.py [--generations 100] [--guides 10]

A drone has 100 time steps to reach a goal and stop there. A plan is a force along x and y for each step. The
planner's model ignores drag and wind, but torch can differentiate it. The real world has both, and no
gradient. ``model`` follows the model's gradient, and misses the goal in the world. ``openai-es`` evaluates
plans in the world only. ``guided-es`` does the same, with half the variance of its noise along the model's
gradients (Maheswaranathan et al. 2019, arXiv 1806.10230): the wrong model suggests directions, and the world
tests them.
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
    """Return the costs (n,) of plans (n, 200): distance from the goal and speed at the end, and forces."""
    forces = plans.reshape(-1, STEPS, 2)
    place, speed = torch.zeros(len(plans), 2), torch.zeros(len(plans), 2)
    for force in forces.unbind(dim=1):
        air = speed - wind
        speed = speed + SECONDS * (force - drag * air.norm(dim=1, keepdim=True) * air)
        place = place + SECONDS * speed
    missed = (place - GOAL).square().sum(dim=1) + speed.square().sum(dim=1)
    return missed + 0.01 * SECONDS * forces.square().sum(dim=(1, 2))


def world(plans: Tensor) -> Tensor:
    """Return the true cost, whose gradient is not used."""
    return cost(plans, WIND, DRAG)


def model_gradient(plan: Tensor) -> Tensor:
    """Return the gradient of the cost in a world without wind and drag, shape (200,)."""
    plan.requires_grad_()
    return torch.autograd.grad(cost(plan[None], torch.zeros(2), 0.0).sum(), plan)[0]


def follow_the_model(generations: int) -> Tensor:
    """Find a plan by gradient descent in the model."""
    plan = torch.zeros(2 * STEPS)
    adam = torch.optim.Adam([plan], lr=LR)
    for _ in range(generations):
        plan.grad = model_gradient(plan.detach().clone())
        adam.step()
    return plan


def evolve(es: Strategy, generations: int) -> Tensor:
    """Find a plan with a strategy in the world."""
    for _ in range(generations):
        es.tell(world(es.ask()))
    return es.center


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generations", type=int, default=100)
    parser.add_argument("--guides", type=int, default=10, help="number of past model gradients to use")
    args = parser.parse_args()
    generations = args.generations
    start = torch.zeros(2 * STEPS)
    options = {"population": 10, "sigma": 0.02, "lr": LR, "shaping": "raw", "direction": "minimize"}
    plans = {
        "nothing": start,
        "model": follow_the_model(generations),
        "openai-es": evolve(OpenAIES(start, **options), generations),
        "guided-es": evolve(
            GuidedES(start, surrogate=model_gradient, guides=args.guides, **options), generations
        ),
    }
    for name, plan in plans.items():
        print(f"{name:10} costs {float(world(plan[None])):6.2f} in the world")


if __name__ == "__main__":
    main()
