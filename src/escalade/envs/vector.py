"""Many seeded episodes at once: what a backend makes of an environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from escalade.envs.backends import BACKENDS
from escalade.envs.environment import Environment
from escalade.errors import InputError, text_of
from escalade.support.imports import import_named


class SlotError(Exception):
    """``problem`` was raised by the environment in position ``row`` of the call's slots."""

    def __init__(self, row: int, problem: BaseException) -> None:
        super().__init__(text_of(problem))
        self.row, self.problem = row, problem


class VectorEnvironment(Protocol):
    """Seeded episodes in numbered slots, stepped in lockstep.

    ``refills`` says whether a single slot can be given a new episode while others run; where it
    cannot, :meth:`reset` takes slots 0 to n - 1 together, when none runs.
    """

    slots: int
    refills: bool

    def reset(self, slots: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[Any]:
        """Begin an episode in each slot; observations, shape (n, size), of images (n, C, H, W)."""
        ...

    def step(
        self, slots: NDArray[np.int64], actions: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        """One step in each slot: observations as in reset, rewards (n,), and whether the episode ended (n,).

        An episode ends when Gymnasium says terminated or truncated. Where the environment has a
        ``reward_info``, rewards have the shape (n, 2): the reward, and that entry of the step's info.
        """
        ...

    def close(self) -> None:
        """Free what the environments hold."""
        ...


class InformingVector(VectorEnvironment, Protocol):
    """Slots of an environment with ``info_keys``."""

    def infos(self, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        """Numbers of the last step's info, shape (n, keys): NaN where it has none of that name.

        ``slots`` are among those of the last :meth:`step`.
        """
        ...


@runtime_checkable
class SlowVector(VectorEnvironment, Protocol):
    """Slots that take their time to begin an episode."""

    alive: Callable[[], None]
    """Called before each reset, for a wave of slow ones is no silence."""

    @property
    def room(self) -> int:
        """Slots that may be used now, from 1 to ``slots``; it only grows."""
        ...


class RememberingVector(VectorEnvironment, Protocol):
    """Slots of Atari games."""

    def ram(self, slots: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The games' memory as the last step left it, shape (n, 128)."""
        ...


class KeepingVector(VectorEnvironment, Protocol):
    """Slots whose states can be kept, and gone on from."""

    def keep(self, slot: int) -> Any:
        """The state of a slot's episode, which later steps do not change."""
        ...

    def go_on(self, slots: NDArray[np.int64], states: Sequence[Any]) -> NDArray[Any]:
        """Put a state that was kept into each slot; observations as in :meth:`reset`."""
        ...


def settle_backend(environment: Environment) -> Environment:
    """Replace the backend ``auto`` by the fastest one that can run this environment.

    MuJoCo's batch or EnvPool where one has the environment and is faster, Gymnasium elsewhere:
    benchmarks/backends.md has the measurements.

    Raises:
        InputError: the backend was asked for by name and has no such environment.
    """
    if environment.exclusive:
        return environment
    if environment.backend == "auto":
        left = [name for name, entry in BACKENDS.items() if not environment.id.startswith(entry.by_name_only)]
        return replace(environment, backend=next(name for name in left if _runs(name, environment)))
    if environment.backend not in BACKENDS:  # of the environment's module, which a worker imports now
        import_named(environment.module, f"environment {environment.id}")
    if not _runs(environment.backend, environment):
        raise InputError(
            f"{BACKENDS[environment.backend].title} has no {environment.id} with these arguments, spaces and "
            "options: use `backend=gymnasium`"
        )
    return environment


def _runs(backend: str, environment: Environment) -> bool:
    """Return whether a backend runs the environment; only some step objects that can be wrapped."""
    entry = BACKENDS[backend]
    needs_python = environment.wrappers or environment.reward_info is not None
    return entry.installed and (entry.python or not needs_python) and entry.load().supports(environment)


def vectorize(environment: Environment, slots: int) -> VectorEnvironment:
    """Slots for up to ``slots`` concurrent episodes, or ``num_envs``, on the environment's backend."""
    if environment.backend == "auto":
        environment = settle_backend(environment)
    slots = min(slots, environment.num_envs or slots)
    vector: VectorEnvironment = BACKENDS[environment.backend].load().make_vector(environment, slots)
    return vector
