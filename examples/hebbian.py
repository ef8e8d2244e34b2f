"""A plastic network, whose weights change during the episode by an evolved rule.

    python examples/hebbian.py [GENERATIONS]

Every episode starts with random weights. After each step, a weight w from x to y grows by
``rate * (A x y + B x + C y + D)``. Then all weights of a layer are divided by the largest. This is from
Najarro and Risi 2020, "Meta-Learning through Hebbian Plasticity in Random Networks" (arXiv 2007.02686).
"""

from __future__ import annotations

import sys
from itertools import pairwise

import torch
from torch import Tensor, nn

import escalade


class Hebbian(nn.Module):
    """Layers without bias, whose weights are the module's state."""

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self.rules = nn.ParameterList(nn.Parameter(torch.randn(5, *shape)) for shape in pairwise(sizes))

    def initial_state(self, seed: int) -> list[Tensor]:
        """Draw the initial weights of an episode, from -0.1 to 0.1."""
        chance = torch.Generator().manual_seed(seed)
        return [0.2 * torch.rand(rule.shape[1:], generator=chance) - 0.1 for rule in self.rules]

    def forward(self, x: Tensor, weights: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Return outputs (batch, outputs), and the weights after this step."""
        changed = []
        for (a, b, c, d, rate), weight in zip(self.rules, weights, strict=True):
            y = torch.tanh((x[:, None, :] @ weight)[:, 0])
            before, after = x[:, :, None], y[:, None, :]
            moved = weight + rate * (a * before * after + b * before + c * after + d)
            changed.append(moved / moved.abs().amax(dim=(1, 2), keepdim=True).clamp(min=1e-6))
            x = y
        return x, changed


if __name__ == "__main__":
    torch.manual_seed(0)
    generations = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    settings = {"population": 32, "normalize_observations": False, "seed": 1, "verbose": False}
    run = escalade.train(
        "CartPole-v1", preset=None, network=Hebbian(4, 16, 2), generations=generations, **settings
    )
    found = escalade.evaluate(run, episodes=20, network=Hebbian(4, 16, 2))
    print(f"{found.mean:.0f} of 500 steps in 20 new episodes, after {generations} generations")
