"""Your own environment, trained from a plain script without a separate module or a __main__ guard.

python examples/custom_environment.py [GENERATIONS]
"""

import sys
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import escalade

Observation = NDArray[np.float32]


class Docking(gym.Env[Observation, Observation]):
    """Steer a drifting ship to the origin with two thrusters, no friction, and a cost of fuel."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (4,))  # position and velocity
    action_space = gym.spaces.Box(-1, 1, (2,))  # thrust

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self.position, self.velocity = self.np_random.normal(size=(2, 2)) * [[2.0], [0.3]]
        return self._observation(), {}

    def step(self, action: Observation) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self.velocity = self.velocity + 0.1 * action
        self.position = self.position + 0.1 * self.velocity
        reward = -float(np.hypot(*self.position)) - 0.05 * float(np.abs(action).sum())
        return self._observation(), reward, False, False, {}

    def _observation(self) -> Observation:
        return np.concatenate([self.position, self.velocity]).astype(np.float32)


gym.register("Docking-v0", entry_point=Docking, max_episode_steps=100)

generations = int(sys.argv[1]) if len(sys.argv) > 1 else 60
run = escalade.train("Docking-v0", population=64, sigma=0.1, lr=0.05, hidden=(16,), generations=generations)

env = gym.make("Docking-v0")
observation, _ = env.reset(seed=1)
for _step in range(100):
    observation, *_ = env.step(run.policy.act(observation))
print(f"mean return {run.summary['eval_return_mean']:.1f}")
print(f"final distance of one ship from the dock: {np.hypot(*observation[:2]):.2f}")
