"""Humanoid-v5 walks within forty minutes of one core: a linear policy that knows a little of walking.

    python examples/humanoid.py [SECONDS [SEED]]

A plain linear policy learns to lunge, and stays with it (benchmarks/learning.md). This one is given three
things, and learns the other 271 numbers by CMA-ES, from the environment's own reward, with less for standing:

- springs hold the joints, so that it stands as it begins, until it tips over;
- a clock lifts one foot after the other: its sine and cosine are seen, also times what else is seen;
- what one side does, the other does mirrored, half a stride later.

In this folder ``escalade render RUN``, ``eval`` and ``resume`` find the policy by its name.
"""

import math
import sys

import torch
from torch import Tensor, nn

import escalade

STRIDE = 60  # environment steps of 0.015 seconds: one step of each foot
STIFFNESS, DAMPING = 100.0, 1.0  # of the springs, in newton metres for a radian, and for a radian a second
LIFT = 0.4  # radians that a hip bends to lift its foot; the knee twice that
# Actuators: waist (y, z, x), legs (hip x, z, y, knee), arms (shoulder twice, elbow); the right one is first.
TORQUE = torch.tensor([100, 100, 100, 100, 100, 300, 200, 100, 100, 300, 200, 25, 25, 25, 25, 25, 25.0])
AXES = torch.tensor([1, 1, 1, 1, -1, -1, 1.0])  # -1 where a joint of the left leg or arm turns the other way
REACH = 5.0  # the largest number that the linear layer is given


class Walker(nn.Module):
    """Actions from the 45 positions and speeds of Humanoid-v5, and from the steps since the episode began."""

    def __init__(self) -> None:
        super().__init__()
        # Of the waist forward, and of what both sides do at once.
        self.alike = nn.Parameter(torch.zeros(17, 8))
        # Of the waist to the sides, and of what they do against each other.
        self.apart = nn.Parameter(torch.zeros(15, 9))

    def initial_state(self, seed: int) -> Tensor:
        """No step of the episode, shape (1,)."""
        return torch.zeros(1)

    def forward(self, seen: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
        """Actions (n, 17) and the next step's number (n, 1), of what is seen (n, 45) and this one's."""
        phase = 2 * math.pi / STRIDE * steps
        alike, apart = self._features(seen, torch.sin(phase), torch.cos(phase))
        both = alike.clamp(-REACH, REACH) @ self.alike
        other = apart.clamp(-REACH, REACH) @ self.apart
        right, left = both[:, 1:] + other[:, 2:], (both[:, 1:] - other[:, 2:]) * AXES
        waist = torch.cat([both[:, :1], other[:, :2]], dim=1)
        own = torch.cat([waist, right[:, :4], left[:, :4], right[:, 4:], left[:, 4:]], dim=1)
        return own + self._springs(seen, torch.sin(phase)), steps + 1

    def _features(self, seen: Tensor, sin: Tensor, cos: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers that a mirror leaves as they are, (n, 17), and those that it negates, (n, 15).

        Half a stride later sine and cosine are negated too: their products go from one kind to the other.
        """
        height, w, x, y, z = seen[:, :5].split(1, dim=1)  # the torso's, and how it is turned, a quaternion
        roll, pitch, yaw = 2 * (w * x + y * z), 2 * (w * y - z * x), 2 * (w * z + x * y)
        ahead, aside = seen[:, 22:23], seen[:, 23:24]  # speeds
        rolling, pitching, yawing = seen[:, 25:28].split(1, dim=1)
        kept = torch.cat([torch.ones_like(w), 5 * (height - 1.3), 3 * pitch, pitching / 2, ahead], dim=1)
        negated = torch.cat([3 * roll, rolling / 2, aside, 2 * yaw, yawing / 2], dim=1)
        twice = torch.cat([2 * sin * cos, cos**2 - sin**2], dim=1)  # of the doubled phase
        alike = torch.cat([kept, negated * sin, negated * cos, twice], dim=1)
        return alike, torch.cat([negated, kept * sin, kept * cos], dim=1)

    def _springs(self, seen: Tensor, sin: Tensor) -> Tensor:
        """Actions that pull each joint to where it stands, or to where it lifts its foot, (n, 17)."""
        order = [1, 0, *range(2, 17)]  # joints begin with the waist's z
        angles, speeds = seen[:, 5:22][:, order], seen[:, 28:45][:, order]
        still = torch.zeros_like(angles)
        lifted = LIFT * torch.cat([sin, -sin], dim=1).clamp(min=0)  # right foot, left foot
        right, left = (torch.cat([still[:, :2], -up, -2 * up], dim=1) for up in lifted.split(1, dim=1))
        target = torch.cat([still[:, :3], right, left, still[:, 11:]], dim=1)
        return (STIFFNESS * (target - angles) - DAMPING * speeds) / TORQUE


def walker(inputs: int, outputs: int) -> Walker:
    """The policy of the run."""
    return Walker()


if __name__ == "__main__":
    run = escalade.train(
        "Humanoid-v5",  # whose preset says what is seen, when the centre is evaluated, and the target of 6000
        policy="humanoid:walker",
        normalize_observations=False,
        strategy="cma-es",
        population=64,
        sigma=0.02,
        reward="shift=3",  # of the 5 a step for standing: with all of them it stays at a slow walk
        seconds=float(sys.argv[1]) if len(sys.argv) > 1 else 3600,
        seed=int(sys.argv[2]) if len(sys.argv) > 2 else 1,
    )
    print(f"return {run.summary['eval_return_mean']} of {run.summary['eval_episodes']} episodes")
