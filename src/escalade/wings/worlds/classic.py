"""Classic control in torch: many episodes of Gymnasium's CartPole, Pendulum, Acrobot and MountainCar at once.

Each class is a batched world (see :mod:`escalade.wings.worlds.world`) and an example for your own: a state
with one row per episode, and a step that computes the next state of all rows.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from escalade.perturbation.device import uniforms

_Step = tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Any]]


class TorchWorld:
    """Base of batched worlds in torch.

    A subclass defines :meth:`first` and :meth:`advance`.

    Args:
        num_envs: number of episodes.
        device: device of all tensors.
    """

    row_seeds = True
    """An episode depends on its own seed only: see :mod:`escalade.wings.worlds.world`."""
    twin: ClassVar[str | None] = None
    """Id of the Gymnasium environment that renders its episodes."""
    max_episode_steps: ClassVar[int]
    """Steps after which episodes are truncated."""
    single_observation_space: spaces.Space[Any]
    single_action_space: spaces.Space[Any]

    def __init__(self, num_envs: int, device: torch.device | str = "cpu") -> None:
        self.num_envs, self.device = num_envs, torch.device(device)
        self.state = torch.zeros(num_envs, 0, device=self.device)
        self._seeds = torch.zeros(num_envs, dtype=torch.int64, device=self.device)
        self._step = 0

    def reset(self, *, seed: Tensor) -> tuple[Tensor, dict[str, Any]]:
        """Begin all episodes, each with its own seed, shape (num_envs,), and return the observations."""
        self.num_envs, self._seeds, self._step = len(seed), seed, 0
        self.state = self.first()
        return self.observe(), {}

    def step(self, actions: Tensor) -> _Step:
        """Return observations, rewards, terminations, truncations and info, as Gymnasium does."""
        self._step += 1
        rewards, ended = self.advance(actions)
        cut = torch.full_like(ended, self._step >= self.max_episode_steps)
        return self.observe(), rewards, ended, cut, {}

    def select_rows(self, rows: Tensor) -> bool:
        """Continue with these rows only, until the next reset.

        Return False if the world cannot. It cannot if another tensor besides :attr:`state` has a row for each
        episode. Override the method for such a world, or leave it: it only saves time.
        """
        own = {"state", "_seeds"}
        others = (part for name, part in vars(self).items() if name not in own and isinstance(part, Tensor))
        if any(part.shape[:1] == (self.num_envs,) for part in others):
            return False
        self.num_envs, self.state, self._seeds = len(rows), self.state[rows], self._seeds[rows]
        return True

    def random(self, count: int) -> Tensor:
        """Return uniform numbers in [0, 1), shape (num_envs, count), from each row's seed and the step."""
        return uniforms(self._seeds, self._step, count)

    def first(self) -> Tensor:
        """Return the first states, shape (num_envs, size)."""
        raise NotImplementedError

    def advance(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Advance :attr:`state` by one step. Return rewards and terminations, shape (num_envs,) each."""
        raise NotImplementedError

    def observe(self) -> Tensor:
        """Return the observations of :attr:`state`, shape (num_envs, inputs)."""
        return self.state


class CartPole(TorchWorld):
    """Balance a pole on a cart (Barto, Sutton and Anderson 1983), as in CartPole-v1."""

    twin = "CartPole-v1"
    max_episode_steps = 500
    single_observation_space = spaces.Box(-np.inf, np.inf, (4,))
    single_action_space = spaces.Discrete(2)
    _GRAVITY, _POLE, _TOTAL, _HALF, _FORCE, _SECONDS = 9.8, 0.1, 1.1, 0.5, 10.0, 0.02
    _FARTHEST, _FALLEN = 2.4, math.radians(12)

    def first(self) -> Tensor:
        """Return positions, angles and velocities within 0.05 of zero."""
        return self.random(4) * 0.1 - 0.05

    def advance(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return a reward of 1 for each step, including the one that ends the episode."""
        place, speed, angle, turning = self.state.unbind(-1)
        force = (2 * actions - 1) * self._FORCE
        sine, cosine = angle.sin(), angle.cos()
        moment = self._POLE * self._HALF
        pushed = (force + moment * turning.square() * sine) / self._TOTAL
        held = self._HALF * (4 / 3 - self._POLE * cosine.square() / self._TOTAL)
        turned = (self._GRAVITY * sine - cosine * pushed) / held
        moved = pushed - moment * turned * cosine / self._TOTAL
        self.state = self.state + self._SECONDS * torch.stack((speed, moved, turning, turned), dim=-1)
        ended = (self.state[:, 0].abs() > self._FARTHEST) | (self.state[:, 2].abs() > self._FALLEN)
        return torch.ones_like(place), ended


class Pendulum(TorchWorld):
    """Swing a pendulum up and hold it there, as in Pendulum-v1."""

    twin = "Pendulum-v1"
    max_episode_steps = 200
    single_observation_space = spaces.Box(np.array([-1, -1, -8], np.float32), np.array([1, 1, 8], np.float32))
    single_action_space = spaces.Box(-2.0, 2.0, (1,))
    _FASTEST, _STRONGEST, _SECONDS, _GRAVITY = 8.0, 2.0, 0.05, 10.0

    def first(self) -> Tensor:
        """Return any angle, and a velocity of at most 1."""
        return (2 * self.random(2) - 1) * torch.tensor([math.pi, 1.0], device=self.device)

    def advance(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return rewards from -16.3 to 0 by angle, velocity and torque. Episodes do not terminate."""
        angle, turning = self.state.unbind(-1)
        torque = actions[:, 0].clamp(-self._STRONGEST, self._STRONGEST)
        above = torch.remainder(angle + math.pi, 2 * math.pi) - math.pi
        costs = above.square() + 0.1 * turning.square() + 0.001 * torque.square()
        turning = turning + (1.5 * self._GRAVITY * angle.sin() + 3 * torque) * self._SECONDS
        turning = turning.clamp(-self._FASTEST, self._FASTEST)
        self.state = torch.stack((angle + turning * self._SECONDS, turning), dim=-1)
        return -costs, torch.zeros_like(costs, dtype=torch.bool)

    def observe(self) -> Tensor:
        """Return cosine and sine of the angle, and its velocity."""
        angle, turning = self.state.unbind(-1)
        return torch.stack((angle.cos(), angle.sin(), turning), dim=-1)


class Acrobot(TorchWorld):
    """Swing the end of two links above a line (Sutton 1996), as in Acrobot-v1."""

    twin = "Acrobot-v1"
    max_episode_steps = 500
    _FASTEST = (4 * math.pi, 9 * math.pi)
    single_observation_space = spaces.Box(
        -np.array([1, 1, 1, 1, *_FASTEST], np.float32), np.array([1, 1, 1, 1, *_FASTEST], np.float32)
    )
    single_action_space = spaces.Discrete(3)
    _SECONDS, _GRAVITY = 0.2, 9.8

    def first(self) -> Tensor:
        """Return angles and velocities within 0.1 of zero."""
        return self.random(4) * 0.2 - 0.1

    def advance(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return a reward of -1 until the goal. The state moves by one Runge-Kutta step."""
        torque, state, seconds = (actions - 1).to(torch.float32), self.state, self._SECONDS
        first = self._change(state, torque)
        second = self._change(state + seconds / 2 * first, torque)
        third = self._change(state + seconds / 2 * second, torque)
        fourth = self._change(state + seconds * third, torque)
        state = state + seconds / 6 * (first + 2 * second + 2 * third + fourth)
        angles = torch.remainder(state[:, :2] + math.pi, 2 * math.pi) - math.pi
        limit = torch.tensor(self._FASTEST, device=state.device)
        self.state = torch.cat((angles, state[:, 2:].clamp(-limit, limit)), dim=-1)
        ended = -angles[:, 0].cos() - (angles[:, 0] + angles[:, 1]).cos() > 1
        return ended.to(torch.float32) - 1, ended

    def observe(self) -> Tensor:
        """Return cosines and sines of both angles, and their velocities."""
        upper, lower, *speeds = self.state.unbind(-1)
        return torch.stack((upper.cos(), upper.sin(), lower.cos(), lower.sin(), *speeds), dim=-1)

    def _change(self, state: Tensor, torque: Tensor) -> Tensor:
        """Return the derivative of the state. Each link has length, mass and moment of inertia 1."""
        upper, lower, fast, faster = state.unbind(-1)
        cosine, sine = lower.cos(), lower.sin()
        both = 0.25 + (1.25 + cosine) + 2
        one = 0.25 + 0.5 * cosine + 1
        weight = 0.5 * self._GRAVITY * (upper + lower - math.pi / 2).cos()
        pull = (
            -0.5 * faster.square() * sine
            - faster * fast * sine
            + 1.5 * self._GRAVITY * (upper - math.pi / 2).cos()
            + weight
        )
        turn = torque + one / both * pull - 0.5 * fast.square() * sine - weight
        lower_turned = turn / (1.25 - one.square() / both)
        upper_turned = -(one * lower_turned + pull) / both
        return torch.stack((fast, faster, upper_turned, lower_turned), dim=-1)


class MountainCar(TorchWorld):
    """Drive a weak car out of a valley (Moore 1990), as in MountainCar-v0."""

    twin = "MountainCar-v0"
    max_episode_steps = 200
    single_observation_space = spaces.Box(
        np.array([-1.2, -0.07], np.float32), np.array([0.6, 0.07], np.float32)
    )
    single_action_space = spaces.Discrete(3)
    _FORCE, _GRAVITY, _FASTEST = 0.001, 0.0025, 0.07
    _LEFT, _RIGHT, _GOAL = -1.2, 0.6, 0.5

    def first(self) -> Tensor:
        """Return positions from -0.6 to -0.4, with zero velocity."""
        place = self.random(1) * 0.2 - 0.6
        return torch.cat((place, torch.zeros_like(place)), dim=-1)

    def advance(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return a reward of -1 for each step until the goal."""
        place, speed = self.state.unbind(-1)
        speed = speed + (actions - 1) * self._FORCE - (3 * place).cos() * self._GRAVITY
        speed = speed.clamp(-self._FASTEST, self._FASTEST)
        place = (place + speed).clamp(self._LEFT, self._RIGHT)
        speed = torch.where((place == self._LEFT) & (speed < 0), torch.zeros_like(speed), speed)
        self.state = torch.stack((place, speed), dim=-1)
        return -torch.ones_like(place), place >= self._GOAL
