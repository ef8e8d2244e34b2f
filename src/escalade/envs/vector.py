"""Vector environments: the interface of backends, which run many seeded episodes at once."""

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
    """The environment at position ``row`` of the call's slots raised ``problem``."""

    def __init__(self, row: int, problem: BaseException) -> None:
        super().__init__(text_of(problem))
        self.row, self.problem = row, problem


class VectorEnvironment(Protocol):
    """Seeded episodes in numbered slots, stepped in lockstep.

    If ``refills`` is True, a single slot can start a new episode while others run. Otherwise :meth:`reset`
    starts slots 0 to n - 1 together, after all episodes have ended.
    """

    slots: int
    refills: bool

    def reset(self, slots: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[Any]:
        """Start an episode in each slot. Return observations of shape (n, size), images as (n, C, H, W)."""
        ...

    def step(
        self, slots: NDArray[np.int64], actions: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        """Take one step in each slot.

        Returns:
            Observations as in :meth:`reset`; rewards, shape (n,); and True for each episode that ended,
            shape (n,), by termination or truncation. With a ``reward_info``, rewards have the shape (n, 2):
            the reward, and that entry of the step's info.
        """
        ...

    def close(self) -> None:
        """Free the resources of the environments."""
        ...


class InformingVector(VectorEnvironment, Protocol):
    """Vector environment with ``info_keys``."""

    def infos(self, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return entries of the last step's info, shape (n, keys), NaN for missing ones.

        ``slots`` have to be among those of the last :meth:`step`.
        """
        ...


@runtime_checkable
class SlowVector(VectorEnvironment, Protocol):
    """Vector environment that may be slow to start episodes."""

    alive: Callable[[], None]
    """Called before each reset. Otherwise many slow resets would look like a hanging worker."""

    @property
    def room(self) -> int:
        """Number of usable slots, from 1 to ``slots``. It never decreases."""
        ...


class RememberingVector(VectorEnvironment, Protocol):
    """Vector environment of Atari games."""

    def ram(self, slots: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the memory of the games after the last step, shape (n, 128)."""
        ...


class KeepingVector(VectorEnvironment, Protocol):
    """Vector environment whose states can be saved and restored."""

    def keep(self, slot: int) -> Any:
        """Return the state of a slot's episode. Later steps do not change it."""
        ...

    def go_on(self, slots: NDArray[np.int64], states: Sequence[Any]) -> NDArray[Any]:
        """Restore a saved state in each slot. Return observations as in :meth:`reset`."""
        ...


def settle_backend(environment: Environment) -> Environment:
    """Replace the backend ``auto`` by the fastest one that can run this environment.

    This is MuJoCo's batch or EnvPool if one has the environment and is faster, otherwise Gymnasium. See
    benchmarks/backends.md for measurements.

    Raises:
        InputError: the backend was requested by name and does not have the environment.
    """
    if environment.exclusive:
        return environment
    if environment.backend == "auto":
        names = [
            name for name, entry in BACKENDS.items() if not environment.id.startswith(entry.by_name_only)
        ]
        return replace(environment, backend=next(name for name in names if _runs(name, environment)))
    if environment.backend not in BACKENDS:  # registered by the environment's module, in a new worker
        import_named(environment.module, f"environment {environment.id}")
    if not _runs(environment.backend, environment):
        raise InputError(
            f"{BACKENDS[environment.backend].title} has no {environment.id} with these arguments, spaces "
            "and options: use `backend=gymnasium`"
        )
    return environment


def _runs(backend: str, environment: Environment) -> bool:
    """Return True if a backend runs the environment. Only some backends support wrappers."""
    entry = BACKENDS[backend]
    needs_python = environment.wrappers or environment.reward_info is not None
    return entry.installed and (entry.python or not needs_python) and entry.load().supports(environment)


def vectorize(environment: Environment, slots: int) -> VectorEnvironment:
    """Make a vector for up to ``slots`` (or ``num_envs``) concurrent episodes on its backend."""
    if environment.backend == "auto":
        environment = settle_backend(environment)
    slots = min(slots, environment.num_envs or slots)
    vector: VectorEnvironment = BACKENDS[environment.backend].load().make_vector(environment, slots)
    return vector
