"""AntBulletEnv-v0 runs after 6 to 16 minutes on one core, with a linear policy that has knowledge of walking.

    pip install 'escalade[pybullet]'
    python examples/ant.py [SECONDS [SEED]]

A plain linear policy reached 1,240 in 13 minutes on two cores (benchmarks/learning.md). This one has the same
built-in parts as humanoid.py. CMA-ES learns its 105 parameters from the environment's reward:

- Springs pull each joint to an angle between its limits, because joints at their limits cost reward. The
  linear part moves these angles.
- The sine and cosine of a clock are inputs, also multiplied with other inputs. Its speed is learned too.
- The right legs move as the left ones do, half a stride later.

Run ``escalade render RUN``, ``eval`` and ``resume`` in this folder, so that they find the policy by its name.
"""

import math
import sys

import torch
from torch import Tensor, nn

import escalade

STRIDE = 30.0  # environment steps of 0.0165 seconds, for a learned rate of zero
# Of the springs: action per half of a joint's range, and per 10 radians per second.
STIFFNESS, DAMPING = 1.5, 0.6
# Legs in the order of the joints: front left, back left, back right, front right; hip, then ankle. With these
# signs, hips turn forward and ankles down.
SIGNS = torch.tensor([-1, 1, -1, -1, 1, -1, 1, 1.0])


class Runner(nn.Module):
    """Policy from the 28 numbers of AntBulletEnv-v0, and from the phase of a clock, to actions."""

    def __init__(self) -> None:
        super().__init__()
        self.rate = nn.Parameter(torch.zeros(1, 1))
        # Hip and ankle of a front and of a back leg: motion common to both sides, and opposite motion.
        self.alike = nn.Parameter(torch.zeros(13, 4))
        self.apart = nn.Parameter(torch.zeros(13, 4))

    def initial_state(self, seed: int) -> Tensor:
        """Return the phase at the start of an episode, shape (1,)."""
        return torch.zeros(1)

    def forward(self, seen: Tensor, phase: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions (n, 8) and the next phase (n, 1) for observations (n, 28) and this phase."""
        alike, apart = self._features(seen, torch.sin(phase), torch.cos(phase))
        both, other = alike @ self.alike, apart @ self.apart
        left, right = both + other, both - other
        target = SIGNS * torch.cat([left, right[:, 2:], right[:, :2]], dim=1)
        # Angles are 1 at a joint's limit, speeds are 1 at 10 radians a second.
        angles, speeds = seen[:, 8:24:2], seen[:, 9:24:2]
        actions = STIFFNESS * (target - angles) - DAMPING * speeds
        return actions, phase + 2 * math.pi / STRIDE * torch.exp(self.rate)

    def _features(self, seen: Tensor, sin: Tensor, cos: Tensor) -> tuple[Tensor, Tensor]:
        """Return features that are unchanged by mirroring, (n, 13), and features that it negates, (n, 13).

        Mirroring includes half a stride, which negates sine and cosine. A product with one of them therefore
        changes its group.
        """
        height, heading, _, ahead, aside, up, roll, pitch = seen[:, :8].split(1, dim=1)
        kept = torch.cat([torch.ones_like(sin), 3 * height, ahead, up, 2 * pitch], dim=1)
        negated = torch.cat([2 * heading, aside, 2 * roll], dim=1)
        twice = torch.cat([2 * sin * cos, cos**2 - sin**2], dim=1)  # of the doubled phase
        alike = torch.cat([kept, negated * sin, negated * cos, twice], dim=1)
        return alike, torch.cat([negated, kept * sin, kept * cos], dim=1)


def runner(inputs: int, outputs: int) -> Runner:
    """Create the policy."""
    return Runner()


if __name__ == "__main__":
    run = escalade.train(
        "AntBulletEnv-v0",  # its preset sets the target of 2500
        policy="ant:runner",
        normalize_observations=False,
        strategy="cma-es",
        population=24,
        sigma=0.1,
        cutoff=400,  # of an episode's 1,000 steps; enough to compare members
        eval_every=10,
        seconds=float(sys.argv[1]) if len(sys.argv) > 1 else 1800,
        seed=int(sys.argv[2]) if len(sys.argv) > 2 else 1,
    )
    print(f"return {run.summary['eval_return_mean']} of {run.summary['eval_episodes']} episodes")
