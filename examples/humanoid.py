"""Humanoid-v5 walks within forty minutes on one core, with a linear policy that has knowledge of walking.

    python examples/humanoid.py [SECONDS [SEED]]

A plain linear policy learns to lunge, and does not get beyond that (benchmarks/learning.md). This one has
three built-in parts. CMA-ES learns its 271 parameters from the environment's reward, with less for standing:

- Springs hold the joints in the initial pose, so that it stands until it tips over.
- A clock lifts one foot after the other. Its sine and cosine are inputs, also multiplied with other inputs.
- The left side moves as the right side does, mirrored and half a stride later.

Run ``escalade render RUN``, ``eval`` and ``resume`` in this folder, so that they find the policy by its name.
"""

import math
import sys

import torch
from torch import Tensor, nn

import escalade

STRIDE = 60  # environment steps of 0.015 seconds: one step of each foot
STIFFNESS, DAMPING = 100.0, 1.0  # of the springs, in newton meters per radian, and per radian per second
LIFT = 0.4  # radians by which a hip bends to lift its foot; the knee bends twice as far
# Actuators: waist (y, z, x), legs (hip x, z, y, knee), arms (shoulder twice, elbow), the right side first.
TORQUE = torch.tensor([100, 100, 100, 100, 100, 300, 200, 100, 100, 300, 200, 25, 25, 25, 25, 25, 25.0])
AXES = torch.tensor([1, 1, 1, 1, -1, -1, 1.0])  # -1 for joints whose axis is reversed on the left side
REACH = 5.0  # limit of the linear layer's inputs


class Walker(nn.Module):
    """Policy from the 45 positions and speeds of Humanoid-v5, and from the number of the step, to actions."""

    def __init__(self) -> None:
        super().__init__()
        # The waist forward, and motion that both sides have in common.
        self.alike = nn.Parameter(torch.zeros(17, 8))
        # The waist to the sides, and motion that is opposite on both sides.
        self.apart = nn.Parameter(torch.zeros(15, 9))

    def initial_state(self, seed: int) -> Tensor:
        """Return the number of the first step, 0, shape (1,)."""
        return torch.zeros(1)

    def forward(self, seen: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions (n, 17) and the next step's number (n, 1) for observations (n, 45) at this step."""
        phase = 2 * math.pi / STRIDE * steps
        alike, apart = self._features(seen, torch.sin(phase), torch.cos(phase))
        both = alike.clamp(-REACH, REACH) @ self.alike
        other = apart.clamp(-REACH, REACH) @ self.apart
        right, left = both[:, 1:] + other[:, 2:], (both[:, 1:] - other[:, 2:]) * AXES
        waist = torch.cat([both[:, :1], other[:, :2]], dim=1)
        own = torch.cat([waist, right[:, :4], left[:, :4], right[:, 4:], left[:, 4:]], dim=1)
        return own + self._springs(seen, torch.sin(phase)), steps + 1

    def _features(self, seen: Tensor, sin: Tensor, cos: Tensor) -> tuple[Tensor, Tensor]:
        """Return features that are unchanged by mirroring, (n, 17), and features that it negates, (n, 15).

        Mirroring includes half a stride, which negates sine and cosine. A product with one of them therefore
        changes its group.
        """
        height, w, x, y, z = seen[:, :5].split(1, dim=1)  # of the torso, with its orientation as a quaternion
        roll, pitch, yaw = 2 * (w * x + y * z), 2 * (w * y - z * x), 2 * (w * z + x * y)
        ahead, aside = seen[:, 22:23], seen[:, 23:24]  # speeds
        rolling, pitching, yawing = seen[:, 25:28].split(1, dim=1)
        kept = torch.cat([torch.ones_like(w), 5 * (height - 1.3), 3 * pitch, pitching / 2, ahead], dim=1)
        negated = torch.cat([3 * roll, rolling / 2, aside, 2 * yaw, yawing / 2], dim=1)
        twice = torch.cat([2 * sin * cos, cos**2 - sin**2], dim=1)  # of the doubled phase
        alike = torch.cat([kept, negated * sin, negated * cos, twice], dim=1)
        return alike, torch.cat([negated, kept * sin, kept * cos], dim=1)

    def _springs(self, seen: Tensor, sin: Tensor) -> Tensor:
        """Return actions, (n, 17), that pull each joint to its initial angle, or to that of a lifted foot."""
        order = [1, 0, *range(2, 17)]  # joints start with the waist's z
        angles, speeds = seen[:, 5:22][:, order], seen[:, 28:45][:, order]
        still = torch.zeros_like(angles)
        lifted = LIFT * torch.cat([sin, -sin], dim=1).clamp(min=0)  # right foot, left foot
        right, left = (torch.cat([still[:, :2], -up, -2 * up], dim=1) for up in lifted.split(1, dim=1))
        target = torch.cat([still[:, :3], right, left, still[:, 11:]], dim=1)
        return (STIFFNESS * (target - angles) - DAMPING * speeds) / TORQUE


def walker(inputs: int, outputs: int) -> Walker:
    """Create the policy."""
    return Walker()


if __name__ == "__main__":
    run = escalade.train(
        "Humanoid-v5",  # its preset sets the observations, the evaluations and the target of 6000
        policy="humanoid:walker",
        normalize_observations=False,
        strategy="cma-es",
        population=64,
        sigma=0.02,
        reward="shift=3",  # of the 5 per step for standing; with all 5 it does not get beyond a slow walk
        seconds=float(sys.argv[1]) if len(sys.argv) > 1 else 3600,
        seed=int(sys.argv[2]) if len(sys.argv) > 2 else 1,
    )
    print(f"return {run.summary['eval_return_mean']} of {run.summary['eval_episodes']} episodes")
