"""Environments that only EnvPool has: ids, specs and spaces."""

from __future__ import annotations

import pkgutil
import re
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from escalade.envs.envpool.families import import_for
from escalade.envs.process import quiet
from escalade.envs.spaces import is_image
from escalade.errors import InputError
from escalade.support.imports import missing

BACKEND: Final = "envpool"
_HOME = "escalade.envs.envpool.object:PooledEnv"
_DM_CONTROL = re.compile(r"dm_control/([A-Za-z_]+)-(\w+?)(?:-v\d+)?")
_NO_LIMIT = 2**31 - 1  # EnvPool's value for no step limit; 0 if every level has its own
_NO_BOUND = float(np.finfo(np.float32).max)
_MULTIPLAYER = ("Cig-v1", "MultiDuel-v1")  # of ViZDoom; making one ends the process
# One discrete choice of ViZDoom's buttons. With EnvPool's default, unbounded numbers, all stay pressed.
_DEFAULTS = {"use_combined_action": True}


class WorldSpec(EnvSpec):
    """Spec of an environment that is not registered with Gymnasium; its id is EnvPool's."""

    def build(
        self, kwargs: dict[str, Any], max_episode_steps: int | None, extra: dict[str, Any]
    ) -> gymnasium.Env[Any, Any]:
        """Make one environment. ``extra`` contains the render mode, if any."""
        made: gymnasium.Env[Any, Any] = pkgutil.resolve_name(_HOME)(
            self.id, max_episode_steps, kwargs, **extra
        )
        return made


def all_ids() -> list[str]:
    """Return all ids of EnvPool. Empty if it is not installed."""
    return import_for("").list_all_envs() if not missing("envpool") else []


def find_world(name: str) -> WorldSpec | None:
    """Return EnvPool's environment of an id or a name such as ``dm_control/cheetah-run``, or None."""
    env_id = _of_dm_control(name)
    if missing("envpool") or env_id not in import_for(env_id).list_all_envs():
        return None
    return WorldSpec(env_id, _HOME)


def _of_dm_control(name: str) -> str:
    """Convert ``dm_control/ball_in_cup-catch`` to ``BallInCupCatch-v1``. Other names are not changed."""
    found = _DM_CONTROL.fullmatch(name)
    if found is None:
        return name
    words = [word for part in found.groups() for word in part.split("_")]
    return "".join(word[:1].upper() + word[1:] for word in words) + "-v1"


def settings(env_id: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments for EnvPool: those of the user, with Escalade's defaults.

    Raises:
        InputError: the user's arguments contain the step limit.
    """
    if "max_episode_steps" in kwargs:
        raise InputError(
            "`env_kwargs` contains max_episode_steps: use the option `max_episode_steps` instead"
        )
    with quiet():
        known = import_for(env_id).make_spec(env_id)._config_keys
    return {name: value for name, value in _DEFAULTS.items() if name in known} | kwargs


def read_spec(env_id: str, arguments: dict[str, Any]) -> Any:
    """Return EnvPool's spec of one environment.

    Raises:
        InputError: it has several players.
        TypeError: the arguments are unknown, or reserved for Escalade.
    """
    spec = import_for(env_id).make_spec(env_id, num_envs=1, batch_size=0, seed=0, **arguments)
    if getattr(spec.config, "max_num_players", 1) > 1 or env_id in _MULTIPLAYER:
        raise InputError(
            f"environment {env_id} has several players or agents, but a policy plays alone: choose a "
            "single-player environment"
        )
    return spec


def step_limit(spec: Any) -> int | None:
    """Return the number of steps after which EnvPool ends an episode, or None."""
    limit = int(getattr(spec.config, "max_episode_steps", 0))
    return limit if 0 < limit < _NO_LIMIT else None


def observation_space(spec: Any) -> spaces.Space[Any]:
    """Return the observation space: uint8 images unchanged, other arrays of 3 or more dimensions flat."""
    space = spec.gymnasium_observation_space
    return space if is_image(space) and space.dtype == np.uint8 else _flattening(space)


def action_space(spec: Any) -> spaces.Space[Any]:
    """Return the action space: several integers as a MultiDiscrete, missing bounds as infinity."""
    space = spec.gymnasium_action_space
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.integer):
        sizes = space.high.astype(np.int64) - space.low + 1
        return spaces.MultiDiscrete(sizes, start=space.low.astype(np.int64))
    return _flattening(space)


def _flattening(space: spaces.Space[Any]) -> spaces.Space[Any]:
    if isinstance(space, spaces.Dict):  # in EnvPool's order, not alphabetical
        return spaces.Dict([(key, _flattening(part)) for key, part in space.items()])
    if not isinstance(space, spaces.Box):
        return space
    low, high = np.array(space.low), np.array(space.high)
    if low.dtype.kind == "f":
        # EnvPool represents a missing upper bound by the largest number of the type, and, by mistake, a
        # missing lower bound by the smallest positive one. If the upper bound is missing, so is the lower.
        low[(high >= _NO_BOUND) | (low <= -_NO_BOUND)] = -np.inf
        high[high >= _NO_BOUND] = np.inf
    shape = space.shape if len(space.shape) < 3 else (-1,)
    return spaces.Box(low.reshape(shape), high.reshape(shape), dtype=space.dtype.type)


def one_of(space: spaces.Space[Any], batch: Any) -> Any:
    """Return the first of a batch of EnvPool's observations as an element of ``space``."""
    if isinstance(space, spaces.Dict):
        return {key: one_of(part, batch[key]) for key, part in space.items()}
    first = np.asarray(batch)[0]
    return np.int64(first.item()) if isinstance(space, spaces.Discrete) else first.reshape(space.shape)


class Flattening:
    """Reads a batch of observations from EnvPool's arrays in the order of ``space``.

    Args:
        space: observation space of the environment. Images have their channels first.
        keys: names of a pool's arrays.
    """

    def __init__(self, space: spaces.Space[Any], keys: list[str]) -> None:
        named = {_path(key): place for place, key in enumerate(keys) if key.split(":")[0] == "obs"}
        only = next(iter(named.values())) if len(named) == 1 else None
        self._parts = [(named[path] if only is None else only, part) for path, part in _leaves(space)]
        self._image = space.shape if is_image(space) else None
        self._single = isinstance(space, spaces.Box)

    def __call__(self, state: list[NDArray[Any]]) -> NDArray[Any]:
        """Return observations, float32 (a single array keeps its type), shape (n, size) or (n, C, H, W)."""
        if self._image is not None:
            images = state[self._parts[0][0]]
            return images if images.shape[1:] == self._image else np.moveaxis(images, -1, 1)
        if self._single:
            values = state[self._parts[0][0]]
            return values.reshape(len(values), -1)
        return np.concatenate([_rows(state[place], part) for place, part in self._parts], axis=1)


def _path(key: str) -> str:
    return key.removeprefix("obs:").replace(":", ".")


def _leaves(space: spaces.Space[Any], path: str = "") -> list[tuple[str, spaces.Space[Any]]]:
    if not isinstance(space, spaces.Dict):
        return [(path, space)]
    inner = [(f"{path}.{key}" if path else key, part) for key, part in space.items()]
    return [leaf for name, part in inner for leaf in _leaves(part, name)]


def _rows(values: NDArray[Any], space: spaces.Space[Any]) -> NDArray[np.float32]:
    """Flatten a part as Gymnasium does, Discrete as one-hot."""
    if isinstance(space, spaces.Discrete):
        chosen: NDArray[np.bool_] = values.reshape(-1, 1) == space.start + np.arange(space.n)
        return chosen.astype(np.float32)
    return values.reshape(len(values), -1).astype(np.float32)
