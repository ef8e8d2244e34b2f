"""Environments that only EnvPool has, by EnvPool's ids: how they are found, and what their spaces are."""

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
_NO_LIMIT = 2**31 - 1  # of steps, as EnvPool writes it; 0 where an environment has one for each of its levels
_NO_BOUND = float(np.finfo(np.float32).max)
_OVER_A_NETWORK = ("Cig-v1", "MultiDuel-v1")  # ViZDoom's: EnvPool ends the process that makes one
# The buttons of ViZDoom as one choice: numbers without bounds, EnvPool's default, press all of them for ever.
_DEFAULTS = {"use_combined_action": True}


class WorldSpec(EnvSpec):
    """Stands for a registration of Gymnasium's, which there is none of; its id is EnvPool's."""

    def build(
        self, kwargs: dict[str, Any], max_episode_steps: int | None, extra: dict[str, Any]
    ) -> gymnasium.Env[Any, Any]:
        """One environment; ``extra`` has the render mode, where it is to draw."""
        made: gymnasium.Env[Any, Any] = pkgutil.resolve_name(_HOME)(
            self.id, max_episode_steps, kwargs, **extra
        )
        return made


def all_ids() -> list[str]:
    """The ids that EnvPool knows, whoever else has them too; none where it is not installed."""
    return import_for("").list_all_envs() if not missing("envpool") else []


def find_world(name: str) -> WorldSpec | None:
    """EnvPool's environment of this id, or of this name in dm_control: ``dm_control/cheetah-run``."""
    env_id = _of_dm_control(name)
    if missing("envpool") or env_id not in import_for(env_id).list_all_envs():
        return None
    return WorldSpec(env_id, _HOME)


def _of_dm_control(name: str) -> str:
    """``dm_control/ball_in_cup-catch`` as EnvPool has it, ``BallInCupCatch-v1``; other names stay."""
    found = _DM_CONTROL.fullmatch(name)
    if found is None:
        return name
    words = [word for part in found.groups() for word in part.split("_")]
    return "".join(word[:1].upper() + word[1:] for word in words) + "-v1"


def settings(env_id: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments that EnvPool makes the environment with: the user's, over defaults of ours.

    Raises:
        InputError: the limit of steps is among the user's.
    """
    if "max_episode_steps" in kwargs:
        raise InputError("`env_kwargs`: max_episode_steps is an option of its own, `max_episode_steps`")
    with quiet():
        known = import_for(env_id).make_spec(env_id)._config_keys
    return {name: value for name, value in _DEFAULTS.items() if name in known} | kwargs


def read_spec(env_id: str, arguments: dict[str, Any]) -> Any:
    """EnvPool's spec of one environment.

    Raises:
        InputError: it is for several players.
        TypeError: it takes no such arguments, or they are not the user's to give.
    """
    spec = import_for(env_id).make_spec(env_id, num_envs=1, batch_size=0, seed=0, **arguments)
    if getattr(spec.config, "max_num_players", 1) > 1 or env_id in _OVER_A_NETWORK:
        raise InputError(
            f"environment {env_id} is for several players or agents, and a policy here plays alone: choose "
            "one that is for one"
        )
    return spec


def step_limit(spec: Any) -> int | None:
    """The steps after which EnvPool ends an episode; None where none are said."""
    limit = int(getattr(spec.config, "max_episode_steps", 0))
    return limit if 0 < limit < _NO_LIMIT else None


def observation_space(spec: Any) -> spaces.Space[Any]:
    """The observations: images of uint8 as they are, other arrays of three dimensions or more as vectors."""
    space = spec.gymnasium_observation_space
    return space if is_image(space) and space.dtype == np.uint8 else _flattening(space)


def action_space(spec: Any) -> spaces.Space[Any]:
    """The actions: several whole numbers are a MultiDiscrete, and no bounds are infinite ones."""
    space = spec.gymnasium_action_space
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.integer):
        sizes = space.high.astype(np.int64) - space.low + 1
        return spaces.MultiDiscrete(sizes, start=space.low.astype(np.int64))
    return _flattening(space)


def _flattening(space: spaces.Space[Any]) -> spaces.Space[Any]:
    if isinstance(space, spaces.Dict):  # in EnvPool's order, not that of the alphabet
        return spaces.Dict([(key, _flattening(part)) for key, part in space.items()])
    if not isinstance(space, spaces.Box):
        return space
    low, high = np.array(space.low), np.array(space.high)
    if low.dtype.kind == "f":
        # EnvPool writes the type's largest number for no upper bound. For no lower bound it writes by mistake
        # the type's smallest number above 0: where the upper bound is missing, so is the lower one.
        low[(high >= _NO_BOUND) | (low <= -_NO_BOUND)] = -np.inf
        high[high >= _NO_BOUND] = np.inf
    shape = space.shape if len(space.shape) < 3 else (-1,)
    return spaces.Box(low.reshape(shape), high.reshape(shape), dtype=space.dtype.type)


def one_of(space: spaces.Space[Any], batch: Any) -> Any:
    """The first of a batch of EnvPool's observations, as an element of ``space``."""
    if isinstance(space, spaces.Dict):
        return {key: one_of(part, batch[key]) for key, part in space.items()}
    first = np.asarray(batch)[0]
    return np.int64(first.item()) if isinstance(space, spaces.Discrete) else first.reshape(space.shape)


class Flattening:
    """Reads a batch of observations from EnvPool's arrays, in the order of ``space``.

    Args:
        space: the environment's observation space; images have their channels first.
        keys: the names of a pool's arrays.
    """

    def __init__(self, space: spaces.Space[Any], keys: list[str]) -> None:
        named = {_path(key): place for place, key in enumerate(keys) if key.split(":")[0] == "obs"}
        only = next(iter(named.values())) if len(named) == 1 else None
        self._parts = [(named[path] if only is None else only, part) for path, part in _leaves(space)]
        self._image = space.shape if is_image(space) else None
        self._kept = isinstance(space, spaces.Box)

    def __call__(self, state: list[NDArray[Any]]) -> NDArray[Any]:
        """Shape (n, size), float32, but one array keeps its type; of images (n, C, H, W)."""
        if self._image is not None:
            images = state[self._parts[0][0]]
            return images if images.shape[1:] == self._image else np.moveaxis(images, -1, 1)
        if self._kept:
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
    """The part as Gymnasium flattens it: a choice is one-hot."""
    if isinstance(space, spaces.Discrete):
        chosen: NDArray[np.bool_] = values.reshape(-1, 1) == space.start + np.arange(space.n)
        return chosen.astype(np.float32)
    return values.reshape(len(values), -1).astype(np.float32)
