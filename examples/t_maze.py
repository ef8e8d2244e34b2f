"""A T-maze: the policy sees the direction to turn at the start only, and must remember it.

    python examples/t_maze.py [GENERATIONS [POLICY [SEED]]]

A policy without memory turns the right way in half of the episodes, so its mean return is at most 0. The
default policy, a GRU cell, reaches 1.
"""

import sys
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

import escalade

AHEAD, LEFT, RIGHT = range(3)
Observation = NDArray[np.float32]


class TMaze(gymnasium.Env[Observation, np.int64]):
    """A corridor of ``length`` steps, then a junction: reward 1 for the turn of the sign, -1 for the other.

    The observation is the sign (-1 left, 1 right, 0 after the first step), whether this is the junction, and
    noise. Walking into a wall costs 0.1.
    """

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, length: int = 4) -> None:
        self.length = length

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self.sign = self.np_random.choice([-1.0, 1.0])
        self.place = 0
        return self.observation(self.sign), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        junction = self.place == self.length
        if junction and action != AHEAD:
            correct = RIGHT if self.sign > 0 else LEFT
            return self.observation(), 1.0 if action == correct else -1.0, True, False, {}
        into_a_wall = junction or action != AHEAD
        self.place += not into_a_wall
        return self.observation(), -0.1 * into_a_wall, False, False, {}

    def observation(self, sign: float = 0.0) -> Observation:
        noise = self.np_random.normal()
        return np.array([sign, self.place == self.length, noise], dtype=np.float32)


gymnasium.register("TMaze-v0", entry_point=TMaze, max_episode_steps=20)

if __name__ == "__main__":
    run = escalade.train(
        "TMaze-v0",
        strategy="openai-es",
        policy=sys.argv[2] if len(sys.argv) > 2 else "gru",
        hidden=(8,),
        init="xavier",
        population=128,
        episodes_per_member=8,
        sigma=0.5,
        lr=0.1,
        normalize_observations=False,
        generations=int(sys.argv[1]) if len(sys.argv) > 1 else 150,
        target_return=0.95,
        eval_episodes=20,
        seed=int(sys.argv[3]) if len(sys.argv) > 3 else 1,
    )
    found = escalade.evaluate(run, episodes=200)
    print(f"mean return {found.mean:.2f} in 200 new episodes")
