"""The backend for EnvPool: steps environments in C++ as one batch."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escalade.envs.backends import BACKENDS
from escalade.envs.environment import Environment
from escalade.envs.envpool.families import import_for, make_pool
from escalade.envs.envpool.object import PooledEnv, infos_of
from escalade.envs.envpool.worlds import Flattening, settings
from escalade.envs.gymnasium_backend import GymnasiumVector
from escalade.envs.lookup import FactorySpec, own_id
from escalade.envs.process import quiet
from escalade.envs.spaces import is_image, is_vector, same
from escalade.envs.vector import VectorEnvironment

_MOST_WORLDS: Final = 256  # concurrent episodes of an environment that only EnvPool has
_WAVE_BYTES: Final = 2**31


def supports(environment: Environment) -> bool:
    """Return True if EnvPool has this environment of Gymnasium's own, with the same spaces.

    False for a user's class or arguments that are registered under an id of Gymnasium.
    """
    own = own_id(environment.spec, environment.kwargs)
    # Without a limit, EnvPool would use its own.
    if own is None or environment.max_episode_steps is None:
        return False
    if is_image(environment.observation_space):
        return not environment.info_keys and own in import_for(own).list_all_envs()
    if not (environment.plain and is_vector(environment.observation_space)):
        return False
    return _has_same_spaces(environment, own) and set(environment.info_keys) <= set(infos_of(own))


def make_vector(environment: Environment, slots: int) -> VectorEnvironment:
    """Make a vector for up to ``slots`` concurrent episodes, of images at most 64 (each is one object)."""
    objects = min(slots, BACKENDS["gymnasium"].most_rows)
    if environment.exclusive:
        if environment.wrappers or environment.reward_info is not None or not environment.plain:
            return GymnasiumVector(environment, objects)
    elif is_image(environment.observation_space):
        return GymnasiumVector(_of_objects(environment), objects)
    return EnvPoolVector(environment, slots)


def _of_objects(environment: Environment) -> Environment:
    """Return the same environment with EnvPool's objects instead of Gymnasium's."""
    own = own_id(environment.spec, environment.kwargs) or environment.id
    limit = environment.limits[0] or environment.spec.max_episode_steps
    factory = partial(PooledEnv, own, limit)
    return replace(environment, spec=FactorySpec(id=environment.id, entry_point=factory), kwargs={})


def _has_same_spaces(environment: Environment, own: str) -> bool:
    envpool = import_for(own)  # slow, so not for environments that EnvPool does not have
    if own not in envpool.list_all_envs():
        return False
    with quiet():  # reading the bounds of some spaces prints warnings
        spec = envpool.make_spec(own)
        observations, actions = spec.gymnasium_observation_space, spec.gymnasium_action_space
    ours = environment.observation_space
    return (
        isinstance(environment.action_space, spaces.Box | spaces.Discrete)
        and same(actions, environment.action_space)
        # Bounds of observations are not compared: EnvPool omits them for Box2D, and they are not used.
        and isinstance(observations, spaces.Box)
        and observations.shape == ours.shape
        and np.issubdtype(observations.dtype, np.floating) == np.issubdtype(np.dtype(ours.dtype), np.floating)
    )


class EnvPoolVector:
    """Runs episodes in waves: each wave is a new pool, in which each environment has the seed of its episode.

    EnvPool sets seeds when a pool is made and ignores them afterwards. In a reused pool, an episode would
    depend on the earlier episodes of its slot.
    """

    refills = False

    def __init__(self, environment: Environment, slots: int) -> None:
        self.slots = slots
        self._id = own_id(environment.spec, environment.kwargs) or environment.id
        self._space, self._limit = environment.observation_space, environment.max_episode_steps
        self._keys = environment.info_keys
        self._infos = infos_of(self._id) if self._keys else {}
        self._settings = settings(self._id, environment.kwargs) if environment.exclusive else {}
        self._numbers = np.full((slots, len(self._keys)), np.nan)
        self._pool: Any = None
        if environment.exclusive:
            # Some robots take hundreds of MB each. Episodes do not depend on the number of slots.
            before = _memory()
            tried = make_pool(self._id, [0], self._limit, **self._settings)
            size = _memory() - before
            del tried  # after the measurement, because this frees the memory of the pool
            self.slots = min(slots, _MOST_WORLDS, max(1, _WAVE_BYTES // max(1, size)))

    def reset(self, slots: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[Any]:
        self.close()  # first, because two pools would need twice the memory
        self._pool = make_pool(self._id, seeds.tolist(), self._limit, **self._settings)
        # The pool's public send and recv build an info dictionary for every batch, which costs more than
        # stepping a dozen cart-poles. These are the functions that they call.
        self._send, self._recv = self._pool._send, self._pool._recv
        keys = self._pool._state_keys
        self._observed = Flattening(self._space, keys)
        self._reward, self._done = keys.index("reward"), keys.index("done")
        self._info = [keys.index(self._infos[key]) for key in self._keys]
        self._dtype = self._pool.spec.action_array_spec["action"].dtype
        self._steps = 0  # of all running episodes, which started together
        self._pool._reset(self._pool.all_env_ids)
        return self._observed(self._recv())

    def step(
        self, slots: NDArray[np.int64], actions: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        ids = slots.astype(np.int32)
        self._send([ids, ids, np.ascontiguousarray(actions, dtype=self._dtype)])
        state = self._recv()
        for column, place in enumerate(self._info):
            self._numbers[slots, column] = state[place]
        self._steps += 1
        ended = state[self._done]
        if self._steps == self._limit:  # some of EnvPool's environments end one step later
            ended = np.ones_like(ended)
        return self._observed(state), state[self._reward], ended

    def infos(self, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._numbers[slots]

    def close(self) -> None:
        self._pool = self._send = self._recv = None


def _memory() -> int:
    """Return the resident memory of this process in bytes. Linux only, like EnvPool."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
