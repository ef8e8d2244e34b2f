"""Batched worlds as environments of a run, and as single episodes that can be rendered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from escalade.envs.batched import BACKEND
from escalade.envs.environment import Environment
from escalade.envs.spaces import check_observation_space
from escalade.errors import InputError
from escalade.perturbation.device import as_device
from escalade.support.generators import generators_kept
from escalade.wings.worlds.world import World, opened


def resolved(bare: Environment) -> Environment:
    """Return the environment with the spaces and the step limit of its world.

    Raises:
        InputError: The world cannot be used, or this machine does not have its device.
        EnvironmentFailure: The world raised an error.
    """
    if bare.backend not in ("auto", BACKEND):
        raise InputError(
            f"`backend` {bare.backend} does not have {bare.id}, which is a batched world; remove it"
        )
    bare = replace(bare, device=str(as_device(bare.device)))  # cpu for cpu:0, cuda:0 for cuda
    with generators_kept():  # which the world may seed
        world = opened(bare)
        seen, actions = world.spaces()
    check_observation_space(seen)
    return replace(
        bare,
        backend=BACKEND,
        max_episode_steps=bare.max_episode_steps or world.max_episode_steps,
        observation_space=seen,
        action_space=actions,
    )


def one(environment: Environment, render_mode: str | None) -> gymnasium.Env[Any, Any]:
    """Return one episode of a world, rendered by its ``twin`` from Gymnasium if it has one."""
    world = World(environment, 1)
    twin = getattr(world.made, "twin", None)
    if render_mode is not None and twin is not None:
        world.close()
        return gymnasium.make(twin, environment.max_episode_steps, render_mode=render_mode)
    env = One(world, environment, render_mode)
    limit = environment.max_episode_steps
    return env if limit is None else TimeLimit(env, limit)


class One(gymnasium.Env[Any, Any]):
    """A world of one episode as a Gymnasium environment."""

    def __init__(self, world: World, environment: Environment, render_mode: str | None) -> None:
        self._world = world
        if render_mode is not None and not callable(getattr(world.made, "render", None)):
            raise InputError(f"world {world.id} cannot be rendered; it has no `render` method")
        self.render_mode = render_mode
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": getattr(world.made, "render_fps", 50),
        }
        self.observation_space, self.action_space = world.spaces()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:
        super().reset(seed=seed)
        chosen = int(self.np_random.integers(2**31)) if seed is None else seed
        return self._plain(self._world.reset(np.array([chosen]), chosen)), {}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        actions = torch.as_tensor(np.asarray(action))[None].to(self._world.device)
        turn = self._world.step(actions)
        return self._plain(turn.observations), float(turn.rewards[0]), bool(turn.ended[0]), False, {}

    def render(self) -> Any:
        frame = self._world.made.render()
        frame = frame.detach().cpu().numpy() if isinstance(frame, torch.Tensor) else np.asarray(frame)
        return frame[0] if frame.ndim == 4 else frame

    def close(self) -> None:
        self._world.close()

    def _plain(self, observations: torch.Tensor) -> NDArray[Any]:
        found: NDArray[Any] = observations[0].detach().cpu().numpy().copy()
        return found.astype(self.observation_space.dtype, copy=False)
