"""OpenAI-ES in plain torch. With the same noise, escalade.strategies.OpenAIES finds the same parameters."""

from collections.abc import Callable

import torch
from torch import Tensor


def evolve(
    fitness: Callable[[Tensor], Tensor],
    center: Tensor,
    noise: Callable[[int], Tensor],
    generations: int = 300,
    sigma: float = 0.1,
    lr: float = 0.01,
) -> Tensor:
    """Maximize ``fitness``, (n, dimension) to (n,); ``noise`` returns a generation's (pairs, dimension)."""
    optimizer = torch.optim.Adam([center], lr=lr)
    for generation in range(generations):
        eps = noise(generation)
        members = torch.stack([center + sigma * eps, center - sigma * eps], dim=1).flatten(0, 1)
        ranks = fitness(members).argsort().argsort()
        utilities = ranks / (len(members) - 1) - 0.5  # centered ranks, worst -0.5 and best 0.5
        gradient = (utilities[0::2] - utilities[1::2]) @ eps / (len(members) * sigma)
        center.grad = -gradient  # optimizers descend
        optimizer.step()
    return center


if __name__ == "__main__":
    torch.manual_seed(0)
    solution = torch.tensor([0.5, 0.1, -0.3])
    found = evolve(lambda x: -((x - solution) ** 2).sum(dim=1), torch.zeros(3), lambda _: torch.randn(25, 3))
    print(f"found {[round(number, 2) for number in found.tolist()]}")
