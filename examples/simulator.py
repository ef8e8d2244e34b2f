"""Train with a simulator written in torch, which balances the poles of all members at once.

    python examples/simulator.py                                     # on the CPU
    python examples/simulator.py --device cuda --population 4096     # 33 thousand poles on a GPU

The simulator is Gymnasium's CartPole-v1. A generation is one loop over time. Every tensor has a row for each
member and a column for each of its poles. Fallen poles no longer count. To use your own simulator of tensors,
replace :func:`step`.
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
GRAVITY, POLE, TOTAL, HALF, FORCE, SECONDS = 9.8, 0.1, 1.1, 0.5, 10.0, 0.02  # POLE and TOTAL are masses


def step(state: Tensor, right: Tensor) -> Tensor:
    """Return the next state, shape (..., 4): position and speed of the cart, angle and speed of the pole."""
    _, speed, angle, angular_speed = state.unbind(-1)
    force = torch.where(right, FORCE, -FORCE)
    acceleration = (force + POLE * HALF * angular_speed**2 * angle.sin()) / TOTAL
    angular_acceleration = (GRAVITY * angle.sin() - angle.cos() * acceleration) / (
        HALF * (4 / 3 - POLE * angle.cos() ** 2 / TOTAL)
    )
    acceleration = acceleration - POLE * HALF * angular_acceleration * angle.cos() / TOTAL
    change = torch.stack((speed, acceleration, angular_speed, angular_acceleration), dim=-1)
    return state + SECONDS * change


def returns(members: Members, seed: int, device: str) -> Tensor:
    """Return each member's mean number of steps before its poles fall. All start from the same states."""
    random = torch.Generator(device).manual_seed(seed)
    start = 0.1 * torch.rand(POLES, 4, generator=random, device=device) - 0.05
    state = start.expand(len(members), -1, -1)
    upright = torch.ones(len(members), POLES, dtype=torch.bool, device=device)
    total = torch.zeros(len(members), device=device)
    for _ in range(STEPS):
        state = step(state, right=members(state).squeeze(-1) > 0)
        total += upright.float().mean(dim=1)
        upright &= (state[..., 0].abs() < 2.4) & (state[..., 2].abs() < FALLEN)
    return total


def main() -> None:
    """Train a small network until it balances every pole."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--population", type=int, default=64)
    parser.add_argument("--generations", type=int, default=50)
    options = parser.parse_args()

    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    result = evolve(
        policy,
        partial(returns, device=options.device),
        batched=True,
        device=options.device,
        population=options.population,
        sigma=0.1,
        lr=0.05,
        generations=options.generations,
        target_return=STEPS,
        verbose=True,
    )
    print(f"the policy balances for {result.eval_return_mean:.0f} of {STEPS} steps")


if __name__ == "__main__":
    main()
