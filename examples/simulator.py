"""Train with a simulator written in torch, which balances the poles of all members at once.

    python examples/simulator.py                                     # on the CPU
    python examples/simulator.py --device cuda --population 4096     # 33 thousand poles on a GPU

The simulator is Gymnasium's CartPole-v1. A generation is one loop over time, in which every tensor has a row
for each member and a column for each of its poles; what has fallen is counted no more. A simulator of your
own that takes and gives tensors has its place in :func:`step`.
"""

from __future__ import annotations

import argparse
import math
from functools import partial

import torch
from torch import Tensor, nn

from escalade import evolve
from escalade.policies.population.members import Members

POLES, STEPS, FALLEN = 8, 500, math.radians(12)
GRAVITY, POLE, TOTAL, HALF, FORCE, SECONDS = 9.8, 0.1, 1.1, 0.5, 10.0, 0.02  # masses: the pole's, and both


def step(state: Tensor, right: Tensor) -> Tensor:
    """The next state, shape (..., 4): the cart's place and speed, the pole's angle and its speed."""
    _, speed, angle, turning = state.unbind(-1)
    force = torch.where(right, FORCE, -FORCE)
    pushed = (force + POLE * HALF * turning**2 * angle.sin()) / TOTAL
    turned = (GRAVITY * angle.sin() - angle.cos() * pushed) / (
        HALF * (4 / 3 - POLE * angle.cos() ** 2 / TOTAL)
    )
    pushed = pushed - POLE * HALF * turned * angle.cos() / TOTAL
    change = torch.stack((speed, pushed, turning, turned), dim=-1)
    return state + SECONDS * change


def returns(members: Members, seed: int, device: str) -> Tensor:
    """The mean number of steps before the fall, for each member; all begin from the same places."""
    random = torch.Generator(device).manual_seed(seed)
    start = 0.1 * torch.rand(POLES, 4, generator=random, device=device) - 0.05
    state = start.expand(len(members), -1, -1)
    stands = torch.ones(len(members), POLES, dtype=torch.bool, device=device)
    total = torch.zeros(len(members), device=device)
    for _ in range(STEPS):
        state = step(state, right=members(state).squeeze(-1) > 0)
        total += stands.float().mean(dim=1)
        stands &= (state[..., 0].abs() < 2.4) & (state[..., 2].abs() < FALLEN)
    return total


def main() -> None:
    """Train a small network until it balances every pole it is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--population", type=int, default=64)
    parser.add_argument("--generations", type=int, default=50)
    asked = parser.parse_args()

    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    result = evolve(
        policy,
        partial(returns, device=asked.device),
        batched=True,
        device=asked.device,
        population=asked.population,
        sigma=0.1,
        lr=0.05,
        generations=asked.generations,
        target_return=STEPS,
        verbose=True,
    )
    print(f"the policy balances for {result.eval_return_mean:.0f} of {STEPS} steps")


if __name__ == "__main__":
    main()
