"""AntBulletEnv-v0 runs in 6 to 16 minutes of one core: a linear policy that knows a little of walking.

    pip install 'escalade[pybullet]'
    python examples/ant.py [SECONDS [SEED]]

A plain linear policy reached 1,240 in 13 minutes of two cores (benchmarks/learning.md). This one is given
what that of humanoid.py is given, and learns 105 numbers by CMA-ES from the environment's own reward:

- springs hold each joint at a place between its limits, which the linear part moves: joints at limits cost;
- a clock: its sine and cosine are seen, also times what else is seen; how fast it goes is learned too;
- what the left legs do, the right ones do half a stride later.

In this folder ``escalade render RUN``, ``eval`` and ``resume`` find the policy by its name.
"""

import math
import sys

import torch
from torch import Tensor, nn

import escalade

STRIDE = 30.0  # environment steps of 0.0165 seconds, as long as the learned rate is zero
# Of the springs: actions for half of a joint's range, and for 10 radians a second.
STIFFNESS, DAMPING = 1.5, 0.6
# Legs in the order of the joints: front left, back left, back right, front right; a hip, then an ankle. Hips
# turn forward, ankles down, by these signs.
SIGNS = torch.tensor([-1, 1, -1, -1, 1, -1, 1, 1.0])


class Runner(nn.Module):
    """Actions from the 28 numbers of AntBulletEnv-v0, and from the phase of a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.rate = nn.Parameter(torch.zeros(1, 1))
        # Of a front and of a back leg: its hip and its ankle. What both sides do, and what they do in turn.
        self.alike = nn.Parameter(torch.zeros(13, 4))
        self.apart = nn.Parameter(torch.zeros(13, 4))

    def initial_state(self, seed: int) -> Tensor:
        """The phase where an episode begins, shape (1,)."""
        return torch.zeros(1)

    def forward(self, seen: Tensor, phase: Tensor) -> tuple[Tensor, Tensor]:
        """Actions (n, 8) and the next step's phase (n, 1), of what is seen (n, 28) and this one's."""
        alike, apart = self._features(seen, torch.sin(phase), torch.cos(phase))
        both, other = alike @ self.alike, apart @ self.apart
        left, right = both + other, both - other
        target = SIGNS * torch.cat([left, right[:, 2:], right[:, :2]], dim=1)
        # Angles are 1 at a joint's limit, speeds are 1 at 10 radians a second.
        angles, speeds = seen[:, 8:24:2], seen[:, 9:24:2]
        actions = STIFFNESS * (target - angles) - DAMPING * speeds
        return actions, phase + 2 * math.pi / STRIDE * torch.exp(self.rate)

    def _features(self, seen: Tensor, sin: Tensor, cos: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers that a mirror leaves as they are, (n, 13), and those that it negates, (n, 13).

        Half a stride later sine and cosine are negated too: their products go from one kind to the other.
        """
        height, heading, _, ahead, aside, up, roll, pitch = seen[:, :8].split(1, dim=1)
        kept = torch.cat([torch.ones_like(sin), 3 * height, ahead, up, 2 * pitch], dim=1)
        negated = torch.cat([2 * heading, aside, 2 * roll], dim=1)
        twice = torch.cat([2 * sin * cos, cos**2 - sin**2], dim=1)  # of the doubled phase
        alike = torch.cat([kept, negated * sin, negated * cos, twice], dim=1)
        return alike, torch.cat([negated, kept * sin, kept * cos], dim=1)


def runner(inputs: int, outputs: int) -> Runner:
    """The policy of the run."""
    return Runner()


if __name__ == "__main__":
    run = escalade.train(
        "AntBulletEnv-v0",  # whose preset says the target of 2500
        policy="ant:runner",
        normalize_observations=False,
        strategy="cma-es",
        population=24,
        sigma=0.1,
        cutoff=400,  # of an episode's 1,000 steps: enough to tell who runs
        eval_every=10,
        seconds=float(sys.argv[1]) if len(sys.argv) > 1 else 1800,
        seed=int(sys.argv[2]) if len(sys.argv) > 2 else 1,
    )
    print(f"return {run.summary['eval_return_mean']} of {run.summary['eval_episodes']} episodes")
