"""Batched worlds for tests: points drift in a plane, and the reward compares an action with a coordinate."""

from typing import ClassVar

import gymnasium
import numpy as np
import torch
from gymnasium import spaces


class Line:
    """One generator for all episodes, as in most simulators on a device; five values per step."""

    max_episode_steps = 12

    def __init__(self, num_envs, device, start=1.0):
        self.num_envs, self.start = num_envs, start
        self.single_observation_space = spaces.Box(-np.inf, np.inf, (2,))
        self.single_action_space = spaces.Box(-1, 1, (1,))
        self.device = torch.device(device)

    def reset(self, *, seed):
        self.random = torch.Generator().manual_seed(seed)
        self.place = self.start * torch.randn(self.num_envs, 2, generator=self.random)
        return self.place, {}

    def step(self, actions):
        self.place = self.place + 0.1 * torch.randn(self.num_envs, 2, generator=self.random)
        reward = -(self.place[:, 0] - actions[:, 0]).abs()
        ended = self.place[:, 1] > 2
        return self.place, reward, ended, torch.zeros_like(ended), {}


class Restless(Line):
    """Draws from an unseeded generator from its second step on."""

    def reset(self, *, seed):
        self.steps = 0
        return super().reset(seed=seed)

    def step(self, actions):
        self.steps += 1
        if self.steps == 2:
            self.random.seed()
        return super().step(actions)


class Changes(Line):
    """Rewards the change of actions, which it stores, and draws from torch's global generator."""

    def reset(self, *, seed):
        self.last = None
        return super().reset(seed=seed)

    def step(self, actions):
        torch.rand(3)
        changed = (actions - (actions if self.last is None else self.last))[:, 0].abs()
        self.last = actions
        seen, _, *others = super().step(actions)
        return seen, changed, *others


class Double(Line):
    """Line in double precision."""

    def reset(self, *, seed):
        return super().reset(seed=seed)[0].double(), {}

    def step(self, actions):
        seen, *others = super().step(actions)
        return seen.double(), *others


class InPlace(Line):
    """Double, which writes each observation to the memory of the last."""

    def reset(self, *, seed):
        self.seen = super().reset(seed=seed)[0].double()
        return self.seen, {}

    def step(self, actions):
        seen, *others = super().step(actions)
        self.seen.copy_(seen)
        return self.seen, *others


class Groups(Line):
    """Groups of observations without spaces of them, and four values a step, the ends in one."""

    def __init__(self, num_envs, device):
        super().__init__(num_envs, device)
        del self.single_observation_space

    def reset(self, *, seed):
        return {"critic": torch.zeros(self.num_envs, 9), "policy": super().reset(seed=seed)[0]}, {}

    def step(self, actions):
        seen, reward, ended, cut, info = super().step(actions)
        return {"critic": torch.zeros(self.num_envs, 9), "policy": seen}, reward, ended | cut, info


class Broken(Line):
    """Row 3 observes NaN from the first step on."""

    def step(self, actions):
        seen, *others = super().step(actions)
        self.steps = getattr(self, "steps", 0) + 1
        return torch.where(torch.arange(self.num_envs)[:, None] == 3, torch.nan, seen), *others


class Growing(Line):
    """Observations that change their shape."""

    def step(self, actions):
        seen, *others = super().step(actions)
        return torch.cat((seen, seen), dim=1), *others


class Full(Line):
    """No memory for more than 32 episodes."""

    def __init__(self, num_envs, device):
        if num_envs > 32:
            raise torch.OutOfMemoryError("tried to allocate 900 GiB: out of memory")
        super().__init__(num_envs, device)


class Unseeded(Line):
    """A reset that takes no seed."""

    def reset(self):
        return super().reset(seed=0)


class Elsewhere(Line):
    """Returns tensors on a device that was not requested."""

    def reset(self, *, seed):
        seen, info = super().reset(seed=seed)
        return seen.to("meta"), info


def without_actions(num_envs, device):
    world = Line(num_envs, device)
    del world.single_action_space
    return world


class Counting(gymnasium.vector.VectorEnv):
    """A vector environment of numpy with only a vector entry point."""

    metadata: ClassVar = {"autoreset_mode": gymnasium.vector.AutoresetMode.DISABLED}

    def __init__(self, num_envs):
        self.num_envs = num_envs
        self.single_observation_space = spaces.Box(0, 9, (1,))
        self.single_action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros((self.num_envs, 1), np.float32), {}

    def step(self, actions):
        self.steps += 1
        cut = np.full(self.num_envs, self.steps == 9)
        seen = np.full((self.num_envs, 1), self.steps, np.float32)
        return seen, actions.astype(np.float64), np.zeros_like(cut), cut, {}


gymnasium.register("Counting-v0", vector_entry_point=Counting, entry_point=None)
