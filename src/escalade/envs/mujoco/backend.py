"""The backend for Gymnasium's MuJoCo tasks: steps them as one batch with ``mujoco.batch`` (4.0 and later).

Episodes are bit-identical to Gymnasium's. Gymnasium's object loads the model, draws initial states and holds
the constants. MuJoCo guarantees that a batch is bit-identical to one ``MjData`` per simulation. Observations
and rewards are those of :mod:`escalade.envs.mujoco.tasks`. There is one model, and a simulation is a row of
numbers: slots are free to make, and a reset costs as much as drawing an initial state.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any, cast

import gymnasium
import numpy as np
from numpy.typing import NDArray

from escalade.envs.environment import Environment
from escalade.envs.lookup import is_gymnasiums_own
from escalade.envs.mujoco.tasks import TASKS
from escalade.envs.vector import SlotError


def supports(environment: Environment) -> bool:
    """Return True for Gymnasium's own MuJoCo tasks without arguments and without contact forces."""
    return (
        environment.id in TASKS
        and environment.plain
        and not environment.kwargs
        and set(environment.info_keys) <= set(TASKS[environment.id].infos)
        and is_gymnasiums_own(environment.spec)
        and importlib.util.find_spec("mujoco.batch") is not None
    )


def make_vector(environment: Environment, slots: int) -> MujocoVector:
    """Make a vector for up to ``slots`` concurrent episodes."""
    return MujocoVector(environment, slots)


class MujocoVector:
    """One row of state per slot, stepped in the calling thread."""

    refills = True

    def __init__(self, environment: Environment, slots: int) -> None:
        self.slots = slots
        self._limit = environment.max_episode_steps or np.inf
        self._env = cast(Any, environment.make().unwrapped)
        self._env.set_state = self._store_start  # Gymnasium draws initial states; the batch simulates them
        self._task = TASKS[environment.id](self._env)
        self._library: Any = importlib.import_module("mujoco.batch")
        mujoco: Any = importlib.import_module("mujoco")
        self._no_stage = mujoco.mjtStage.mjSTAGE_NONE.value
        model = self._env.model
        if not _may_touch(model):  # skipping the search for contacts does not change results
            model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        self._batch = self._library.Batch(model, slots, nthread=1)
        self._fields = {name: self._batch.bind(name) for name in ("qpos", "qvel", *self._task.fields)}
        self._ctrl = self._batch.bind("ctrl")
        self._steps = np.zeros(slots, np.int64)
        self._keys = environment.info_keys
        self._infos = np.full((slots, len(self._keys)), np.nan)
        self._row = 0  # the slot whose initial state is being drawn

    def reset(self, slots: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[Any]:
        ids = self._clear(slots)
        for slot, seed in zip(slots.tolist(), seeds.tolist(), strict=True):
            self._row = slot
            gymnasium.Env.reset(self._env, seed=seed)  # seeds its generator
            self._env.reset_model()
        return self._begin(slots, ids)

    def step(
        self, slots: NDArray[np.int64], actions: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        self._ctrl[slots] = actions
        before = self._fields["qpos"][slots]
        self._run(slots, self._batch.step, np.sort(slots), self._env.frame_skip)
        now = self._now(slots)
        outcome = self._task.outcome(before, now, actions)
        for column, key in enumerate(self._keys):
            self._infos[slots, column] = outcome.info[key]
        self._steps[slots] += 1
        ended = outcome.terminated | (self._steps[slots] >= self._limit)
        return self._task.observations(now), outcome.rewards, ended

    def infos(self, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._infos[slots]

    def keep(self, slot: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the positions and velocities of a slot's simulation."""
        return self._fields["qpos"][slot].copy(), self._fields["qvel"][slot].copy()

    def go_on(
        self, slots: NDArray[np.int64], states: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]
    ) -> NDArray[Any]:
        """Start an episode with saved positions and velocities in each slot; its step limit starts anew."""
        ids = self._clear(slots)
        for slot, (qpos, qvel) in zip(slots.tolist(), states, strict=True):
            self._fields["qpos"][slot], self._fields["qvel"][slot] = qpos, qvel
        return self._begin(slots, ids)

    def close(self) -> None:
        """Close the environment that draws initial states."""
        self._env.close()

    def _clear(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Reset the simulations, and return the slots in the order that the batch takes."""
        ids = np.sort(slots)
        self._batch.reset(ids, stage=self._no_stage)
        return ids

    def _begin(self, slots: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[Any]:
        """Start episodes with the stored positions and velocities. Return observations."""
        self._run(slots, self._batch.forward, ids)
        self._steps[slots] = 0
        return self._task.observations(self._now(slots))

    def _store_start(self, qpos: NDArray[np.float64], qvel: NDArray[np.float64]) -> None:
        self._fields["qpos"][self._row], self._fields["qvel"][self._row] = qpos, qvel

    def _now(self, slots: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
        return {name: field[slots] for name, field in self._fields.items()}

    def _run(self, slots: NDArray[np.int64], call: Any, *arguments: Any) -> None:
        try:
            call(*arguments)
        except self._library.SimulationError as problem:
            raise SlotError(int(np.flatnonzero(slots == problem.ids[0])[0]), problem) from problem


def _may_touch(model: Any) -> bool:
    """Return True if any two geoms of the model can be in contact."""
    types = np.bitwise_or.reduce(model.geom_contype, initial=0)
    affinities = np.bitwise_or.reduce(model.geom_conaffinity, initial=0)
    return bool(types & affinities) or model.npair > 0
