"""Functional environments in JAX: gymnax, Brax and MuJoCo Playground, stepped by one compiled function.

An episode is a function of its key, so each has its own seed. JAX and torch share arrays by DLPack.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from escalade.errors import InputError, nearest
from escalade.wings.worlds.world import as_space

Reset = Callable[[Any], Any]
"""Maps a key to the first state of an episode."""
Step = Callable[[Any, Any, Any], tuple[Any, Any, Any, Any]]
"""Maps a key, a state and an action to the next state, the observation, the reward and the end."""


class Functional:
    """Many episodes of a functional environment.

    Args:
        num_envs: number of episodes.
        device: device of the tensors and of JAX's arrays.
        reset: begins an episode.
        observe: observation of a state that was just reset.
        step: advances an episode by one step, and does not begin another one at its end.
        spaces: spaces of an observation and an action; None for unbounded numbers.
        limit: maximum steps of an episode.
    """

    row_seeds = True

    def __init__(
        self,
        num_envs: int,
        device: str,
        *,
        reset: Reset,
        observe: Callable[[Any], Any],
        step: Step,
        spaces: tuple[spaces.Space[Any] | None, spaces.Space[Any]],
        limit: int,
    ) -> None:
        self.num_envs, self.max_episode_steps = num_envs, limit
        self.single_observation_space, self.single_action_space = spaces
        self._device = _device_of_jax(device)

        def first(seeds: Any) -> Any:
            keys = jax.vmap(jax.random.PRNGKey)(seeds)
            states = jax.vmap(reset)(keys)
            return keys, states, jax.vmap(observe)(states)

        def advance(keys: Any, count: Any, states: Any, actions: Any) -> Any:
            moved = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, count)
            return jax.vmap(step)(moved, states, actions)

        self._first, self._advance = jax.jit(first), jax.jit(advance)
        self._keys: Any = None
        self._states: Any = None
        self._count = 0

    def reset(self, *, seed: Tensor) -> tuple[Any, dict[str, Any]]:
        """Begin all episodes, each with its own seed."""
        with self._here():
            seeds = jnp.asarray(seed.cpu().numpy().astype(np.uint32))
            self._keys, self._states, seen = self._first(seeds)
        self._count = 0
        return seen, {}

    def step(self, actions: Tensor) -> tuple[Any, Any, Any, dict[str, Any]]:
        """Advance all episodes. Return observations, rewards, ends and info."""
        self._count += 1
        with self._here():
            taken = jax.dlpack.from_dlpack(actions.contiguous())
            self._states, seen, rewards, ended = self._advance(self._keys, self._count, self._states, taken)
        return seen, rewards, ended, {}

    def _here(self) -> AbstractContextManager[Any]:
        place: AbstractContextManager[Any] = jax.default_device(self._device)
        return place


def gymnax(task: str, num_envs: int, device: str, **kwargs: Any) -> Functional:
    """Create ``gymnax.make(task)``.

    Further arguments are those of its constructor.

    Raises:
        InputError: gymnax does not have the environment.
    """
    import gymnax as package

    if task not in package.registered_envs:
        raise InputError(f"gymnax has no {task}{nearest(task, package.registered_envs)}")
    env, params = package.make(task, **kwargs)

    def begin(key: Any) -> Any:
        return env.reset_env(key, params)

    def step(key: Any, state: Any, action: Any) -> Any:
        seen, after, reward, ended, _ = env.step_env(key, state[1], action, params)
        return (seen, after), seen, reward, ended | env.is_truncated(after, params)

    return Functional(
        num_envs,
        device,
        reset=begin,
        observe=lambda state: state[0],
        step=step,
        spaces=(as_space(env.observation_space(params)), as_space(env.action_space(params))),
        limit=int(params.max_steps_in_episode),
    )


def brax(task: str, num_envs: int, device: str, **kwargs: Any) -> Functional:
    """Create ``brax.envs.get_environment(task)``, with episodes of 1,000 steps as in Brax's training.

    Raises:
        InputError: Brax does not have the environment.
    """
    from brax import envs

    if task not in envs._envs:
        raise InputError(f"Brax has no {task}{nearest(task, envs._envs)}")
    return _stateful(envs.get_environment(task, **kwargs), num_envs, device, 1000)


def playground(task: str, num_envs: int, device: str, **kwargs: Any) -> Functional:
    """Create ``mujoco_playground.registry.load(task)``.

    Further arguments override its config.

    Raises:
        InputError: Playground does not have the environment.
    """
    from mujoco_playground import registry

    if task not in registry.ALL_ENVS:
        raise InputError(f"MuJoCo Playground has no {task}{nearest(task, registry.ALL_ENVS)}")
    env = registry.load(task, config_overrides=kwargs or None)
    limit = kwargs.get("episode_length", registry.get_default_config(task).episode_length)
    return _stateful(env, num_envs, device, int(limit))


def _stateful(env: Any, num_envs: int, device: str, limit: int) -> Functional:
    """Wrap an environment whose ``reset(key)`` and ``step(state, action)`` return a state with ``obs``."""

    def step(key: Any, state: Any, action: Any) -> Any:
        after = env.step(state, action)
        return after, after.obs, after.reward, after.done.astype(bool)

    return Functional(
        num_envs,
        device,
        reset=env.reset,
        observe=lambda state: state.obs,
        step=step,
        spaces=(None, spaces.Box(-1.0, 1.0, (env.action_size,))),
        limit=limit,
    )


def _device_of_jax(device: str) -> Any:
    """Return JAX's device for a name of torch.

    Raises:
        InputError: JAX does not have the device.
    """
    place = torch.device(device)
    try:
        return jax.devices("gpu" if place.type == "cuda" else place.type)[place.index or 0]
    except (RuntimeError, IndexError):
        raise InputError(f"JAX does not have `device` {device} here; install a build of JAX for it") from None
