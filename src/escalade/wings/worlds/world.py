"""A batched world of any package, as rollouts use it: tensors of one device in and out.

A world has the interface of Gymnasium's ``VectorEnv``, with tensors: ``num_envs``; ``reset(seed=...)``, which
returns observations and an info; ``step(actions)``, which returns observations, rewards, terminations,
truncations and an info, or one tensor for both ends. Observations are a tensor with a row for each episode,
or a dict with such a tensor for the policy. ``single_observation_space`` and ``single_action_space`` are
those of one episode. ``max_episode_steps`` is the limit of an episode.

With ``row_seeds = True``, ``reset`` takes a tensor of seeds, one for each episode, and an episode depends on
its own seed only. The members of a pair then begin alike, and results do not depend on the batch. Other
worlds receive one seed for all episodes. A world with ``row_seeds`` may have ``select_rows(rows)``. It
continues with these rows only, until the next reset, and returns False if it cannot.

A world may start another episode in a row whose episode has ended: rows count until their first end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from escalade.envs.environment import Environment
from escalade.errors import EnvironmentFailure, EscaladeError, InputError, in_words
from escalade.support.generators import seed_generators

_OF_THE_POLICY = ("policy", "actor", "state", "obs", "observation")
"""Names of the policy's part in a dict of observations, by preference (Isaac Lab, mjlab, Playground)."""
_OUT_OF_MEMORY = "out of memory"


class Turn(NamedTuple):
    """One step of all episodes: observations (num_envs, ...), rewards and ends (num_envs,)."""

    observations: Tensor
    rewards: Tensor
    ended: Tensor


class World:
    """The world of an ``environment`` with ``num_envs`` episodes.

    Raises:
        InputError: The world has another number of episodes, is on another device, or has no spaces.
        EnvironmentFailure: The world raised an error.
    """

    def __init__(self, environment: Environment, num_envs: int) -> None:
        spec: Any = environment.spec
        self.id, self.num_envs, self.device = environment.id, num_envs, torch.device(environment.device)
        with self._guarded("failed to start"):
            self.made = spec.world(num_envs, environment.device, dict(environment.kwargs))
        if getattr(self.made, "num_envs", None) != num_envs:
            raise InputError(
                f"world {self.id} has num_envs={getattr(self.made, 'num_envs', None)}, but {num_envs} was "
                "requested; create as many episodes as `num_envs`"
            )
        self.row_seeds = bool(getattr(self.made, "row_seeds", False))
        limit = getattr(self.made, "max_episode_steps", None) or getattr(
            self.made, "max_episode_length", None
        )
        self.max_episode_steps = None if limit is None else int(limit)
        self._shape: torch.Size | None = None
        self.rows = num_envs  # that are stepped: see `select`
        self.key = _key(environment)
        self.users = 0

    def reset(self, seeds: NDArray[np.int64], seed: int) -> Tensor:
        """Begin all episodes, each with its own of ``seeds``, shape (num_envs,), or all with ``seed``."""
        self.rows, self._begun = self.num_envs, (seeds, seed)
        own = torch.from_numpy(seeds).to(self.device) if self.row_seeds else seed
        with self._guarded("failed in reset(seed=...)"):
            if not self.row_seeds:
                seed_generators(seed % 2**32)  # a world may draw from them
            found = self.made.reset(seed=own)
        return self._seen(found[0] if isinstance(found, tuple) else found)

    def step(self, actions: Tensor) -> Turn:
        """Advance all episodes by one step. Begin again if another user has removed rows."""
        if len(actions) > self.rows:
            self.reset(*self._begun)
        with self._guarded("raised"):
            observations, rewards, ended, *more = self.made.step(actions)
        if len(more) == 2:
            ended = self._tensor(ended).bool() | self._tensor(more[0]).bool()
        return Turn(self._seen(observations), self._row(rewards), self._row(ended).bool())

    def select(self, rows: Tensor) -> bool:
        """Continue with these rows alone, until the next reset; return False if the world cannot."""
        change = getattr(self.made, "select_rows", None) if self.row_seeds else None
        if change is None:
            return False
        with self._guarded("raised"):
            if not change(rows):
                return False
        self.rows = len(rows)
        return True

    def close(self) -> None:
        """Close the world if it has a ``close`` method."""
        if callable(close := getattr(self.made, "close", None)):
            close()

    def spaces(self) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
        """Return the spaces of one observation and one action.

        Raises:
            InputError: The world has no action space.
        """
        actions = getattr(self.made, "single_action_space", None)
        if actions is None:
            raise InputError(f"world {self.id} has no `single_action_space`; add one")
        seen = getattr(self.made, "single_observation_space", None)
        if seen is None:
            first = self.reset(np.arange(self.num_envs), 0)
            return spaces.Box(-np.inf, np.inf, tuple(first.shape[1:])), as_space(actions)
        return as_space(_policy_part(seen.spaces) if hasattr(seen, "spaces") else seen), as_space(actions)

    def _seen(self, observations: Any) -> Tensor:
        """Return the policy's part of the observations, and check its shape."""
        found = self._tensor(
            _policy_part(observations) if isinstance(observations, Mapping) else observations
        )
        if found.shape[:1] != (self.rows,):
            raise EnvironmentFailure(
                f"world {self.id} returned observations of shape {tuple(found.shape)}; the first axis must "
                f"be its {self.rows} episodes"
            )
        if self._shape is None:
            self._shape = found.shape[1:]
        elif found.shape[1:] != self._shape:
            raise EnvironmentFailure(
                f"world {self.id} returned observations of shape {tuple(self._shape)} at first, then of "
                f"{tuple(found.shape[1:])}; all must have the same shape"
            )
        return found

    def _row(self, numbers: Any) -> Tensor:
        return self._tensor(numbers).reshape(self.rows)

    def _tensor(self, values: Any) -> Tensor:
        """Convert an array of any library to a tensor of the device, without a copy if possible."""
        if not isinstance(values, Tensor):
            values = (
                torch.as_tensor(values)
                if isinstance(values, np.ndarray)
                else torch.utils.dlpack.from_dlpack(values)
            )
            values = values.to(self.device)
        if values.device.type != self.device.type:
            raise InputError(
                f"world {self.id} returned a tensor on {values.device} with `device` {self.device}; create "
                "all of its tensors there"
            )
        return cast("Tensor", values)

    @contextmanager
    def _guarded(self, what: str) -> Iterator[None]:
        """Report errors of the world in one line."""
        try:
            yield
        except (EscaladeError, KeyboardInterrupt):
            raise
        except (Exception, SystemExit) as problem:
            fix = ""
            if isinstance(problem, torch.OutOfMemoryError) or _OUT_OF_MEMORY in str(problem).lower():
                fix = f"; {self.num_envs} episodes are too many, use a smaller `num_envs`"
            raise EnvironmentFailure(f"world {self.id} {what}: {in_words(problem)}{fix}") from problem


def as_space(space: Any) -> spaces.Space[Any]:
    """Convert a space of another package, with Gymnasium's attributes, to one of Gymnasium's."""
    if isinstance(space, spaces.Space):
        return space
    if hasattr(space, "n"):
        return spaces.Discrete(int(space.n))
    low, high = (np.broadcast_to(np.float32(bound), space.shape) for bound in (space.low, space.high))
    return spaces.Box(low, high, dtype=np.float32)


def _policy_part(parts: Mapping[str, Any]) -> Any:
    """Return the policy's part of a dict of observations.

    Raises:
        InputError: No part has one of the known names.
    """
    for name in _OF_THE_POLICY:
        if name in parts:
            return parts[name]
    if len(parts) == 1:
        return next(iter(parts.values()))
    raise InputError(
        f"the observations are a dict of {', '.join(parts)}; rename the policy's to {_OF_THE_POLICY[0]!r}"
    )


_open: list[World] = []
"""Open worlds of this process: some take a minute to create."""


def opened(environment: Environment, *, shared: bool = False) -> World:
    """Return an open world of an environment, or open it and close all unused ones.

    A world with ``users`` is returned only if ``shared``. The caller counts itself as a user.
    """
    for world in _open:
        if world.key == _key(environment) and (shared or not world.users):
            return world
    for world in [world for world in _open if not world.users]:
        _close(world)
    assert environment.num_envs is not None
    _open.append(World(environment, environment.num_envs))
    return _open[-1]


def release(world: World) -> None:
    """Release a world. It is closed when its last user releases it."""
    world.users -= 1
    if not world.users:
        _close(world)


def _close(world: World) -> None:
    _open.remove(world)
    world.close()


def _key(environment: Environment) -> tuple[Any, ...]:
    """Return what worlds that can replace each other have in common."""
    spec = environment.spec
    kwargs = repr(environment.kwargs)
    return spec.id, spec.entry_point, kwargs, environment.device, environment.num_envs
