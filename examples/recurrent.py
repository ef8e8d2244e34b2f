"""A recurrent module that must remember: its inputs are a sign, then noise; its output must be the sign.

    python examples/recurrent.py [GENERATIONS]

The output is a hard decision, right or wrong, so there is no gradient to backpropagate through the steps.
"""

import sys

import torch
from torch import Tensor, nn

import escalade

STEPS, EPISODES = 12, 64


class Memory(nn.Module):
    """A GRU cell with a binary output."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(1, 8)
        self.answer = nn.Linear(8, 1)

    def forward(self, steps: Tensor) -> Tensor:
        """Return signs, shape (episodes,), for inputs of shape (steps, episodes)."""
        state = torch.zeros(steps.shape[1], 8)
        for step in steps:
            state = self.cell(step[:, None], state)
        return self.answer(state).squeeze(1).sign()


def episodes(seed: int) -> tuple[Tensor, Tensor]:
    """Return inputs, shape (steps, episodes), and the signs to remember."""
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(2, (EPISODES,), generator=generator) * 2.0 - 1
    noise = torch.randn(STEPS, EPISODES, generator=generator)
    return torch.cat([signs[None], noise]), signs


def fitness(module: Memory, generation: int) -> Tensor:
    """Return the fraction of correct signs. All members of a generation get the same episodes."""
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
print(f"{sum(right) / len(right):.1%} correct on new episodes, after {result.generations} generations")
