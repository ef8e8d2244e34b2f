"""A larger network that starts with a smaller one's weights and the same outputs.

    python examples/larger_network.py [GENERATIONS]

The old weights fill a corner of the new matrices. Weights from the new units start at 0.
"""

from __future__ import annotations

import sys

import torch
from torch import nn

import escalade


@torch.no_grad()
def widened(small: nn.Sequential, units: int) -> nn.Sequential:
    """Return a network of ``units`` hidden units with the outputs of ``small`` (linear, tanh, linear)."""
    first, last = small[0], small[2]
    large = nn.Sequential(nn.Linear(first.in_features, units), nn.Tanh(), nn.Linear(units, last.out_features))
    known = first.out_features
    large[0].weight[:known], large[0].bias[:known] = first.weight, first.bias
    large[2].weight.zero_()
    large[2].weight[:, :known] = last.weight
    large[2].bias.copy_(last.bias)
    return large


if __name__ == "__main__":
    generations = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    settings = {"preset": None, "normalize_observations": False, "seed": 1, "verbose": False}
    run = escalade.train("CartPole-v1", policy="mlp", hidden=(8,), generations=generations, **settings)
    small = escalade.load(run).network
    torch.manual_seed(0)
    large = widened(small, 32)
    seen = torch.randn(100, 4)
    print(f"largest difference of outputs: {(large(seen) - small(seen)).abs().max():.1e}")
    further = escalade.train("CartPole-v1", network=large, generations=generations, **settings)
    for name, found in (("8 units", run), (f"32, {generations} generations later", further)):
        returns = escalade.evaluate(found, episodes=20, network=large if found is further else None)
        print(f"{name}: {returns.mean:.0f} of 500 steps")
