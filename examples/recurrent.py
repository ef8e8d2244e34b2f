"""A recurrent module that must remember: it is shown a sign, then noise, and asked for the sign at the end.

    python examples/recurrent.py [GENERATIONS]

Its output is a hard decision, right or wrong, so there is no gradient to send back through the steps.
"""

import sys

import torch
from torch import Tensor, nn

import escalade

STEPS, EPISODES = 12, 64


class Memory(nn.Module):
    """A GRU cell, and a yes or no."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(1, 8)
        self.answer = nn.Linear(8, 1)

    def forward(self, steps: Tensor) -> Tensor:
        """Signs, shape (episodes,), for inputs of shape (steps, episodes)."""
        state = torch.zeros(steps.shape[1], 8)
        for step in steps:
            state = self.cell(step[:, None], state)
        return self.answer(state).squeeze(1).sign()


def episodes(seed: int) -> tuple[Tensor, Tensor]:
    """Inputs, shape (steps, episodes), and the signs to remember."""
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(2, (EPISODES,), generator=generator) * 2.0 - 1
    noise = torch.randn(STEPS, EPISODES, generator=generator)
    return torch.cat([signs[None], noise]), signs


def fitness(module: Memory, generation: int) -> Tensor:
    """Share of right answers; all members of a generation are asked the same."""
    steps, signs = episodes(generation)
    return (module(steps) == signs).float().mean()


torch.manual_seed(0)
generations = int(sys.argv[1]) if len(sys.argv) > 1 else 300
result = escalade.evolve(
    Memory(),
    fitness,
    population=64,
    sigma=0.1,
    lr=0.05,
    generations=generations,
    target_return=1.0,
    target_patience=3,
    verbose=True,
)
right = [fitness(result.module, 1_000_000 + episode).item() for episode in range(20)]
print(f"{sum(right) / len(right):.1%} right on new episodes, after {result.generations} generations")
