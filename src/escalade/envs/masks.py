"""Action masks: the actions that an environment allows in its current state."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escalade.errors import InputError, text_of

MASK = "action_mask"
"""Entry of an info, or of a Dict observation, with one number per action; 0 marks an illegal action."""

_ILLEGAL = re.compile(
    r"(?=.*\b(illegal|invalid|not (a )?(legal|valid))\b)(?=.*\b(action|move)s?\b)", re.I | re.S
)

Array = NDArray[Any]
Mask = NDArray[np.bool_]


def maskable(space: spaces.Space[Any]) -> bool:
    """Return True if actions of the space can be masked."""
    return isinstance(space, spaces.Discrete | spaces.MultiDiscrete)


def read_mask(space: Any, mask: Any) -> Mask:
    """Return one bool per output of a policy, True for a legal action, shape (outputs,).

    Args:
        space: Discrete or MultiDiscrete.
        mask: an array with one number per action, or one array per component of a MultiDiscrete space,
            as in Gymnasium's ``sample``.

    Raises:
        InputError: the mask has a different size.
    """
    size = int(space.n) if isinstance(space, spaces.Discrete) else int(space.nvec.sum())
    flat = _flat(mask)
    if flat.size != size:
        raise InputError(
            f"{MASK} has {flat.size} numbers, but {str(space)[:80]} needs {size}, one per action"
        )
    return flat


def read_masks(space: spaces.Space[Any], masks: Any, rows: int) -> Mask:
    """Return the masks of a batch of observations, shape (rows, outputs).

    Raises:
        InputError: the number of masks or the size of one is wrong, or actions of the space cannot be
            masked.
    """
    if not maskable(space):
        raise InputError(f"{MASK} needs a Discrete or MultiDiscrete action space, not {str(space)[:80]}")
    if len(masks) != rows:
        raise InputError(f"{MASK} has {len(masks)} rows, but there are {rows} observations")
    return np.stack([read_mask(space, mask) for mask in masks])


def _flat(mask: Any) -> Mask:
    if isinstance(mask, tuple | list):
        return np.concatenate([_flat(part) for part in mask])
    return np.asarray(mask, np.bool_).reshape(-1)


class Masks:
    """Masks of the slots of a vector environment.

    Args:
        space: Discrete or MultiDiscrete.
        slots: number of slots.
    """

    def __init__(self, space: Any, slots: int) -> None:
        self._space = space
        self._rows: Mask | None = None
        self._slots = slots

    @property
    def active(self) -> bool:
        """True once an info contained a mask."""
        return self._rows is not None

    def take(self, slot: int, info: dict[str, Any]) -> None:
        """Store the mask of a slot's latest info. Without a mask, all actions are legal."""
        mask = info.get(MASK)
        if mask is not None:
            mask = read_mask(self._space, mask)
            if self._rows is None:
                self._rows = np.ones((self._slots, mask.size), np.bool_)
            self._rows[slot] = mask
        elif self._rows is not None:
            self._rows[slot] = True

    def of(self, slots: NDArray[np.int64]) -> Mask:
        """Return masks of shape (n, outputs). Requires :attr:`active`."""
        assert self._rows is not None
        return self._rows[slots]

    def legal(self, slots: NDArray[np.int64], actions: Array) -> Array:
        """Return the actions, with each illegal one replaced by a legal one."""
        if self._rows is None:
            return actions
        pairs = zip(actions, self._rows[slots], strict=True)
        return np.array([legal_action(self._space, action, mask) for action, mask in pairs], actions.dtype)


def legal_action(space: Any, action: Any, mask: Mask) -> Any:
    """Return the action, or a legal one derived from it if it is illegal."""
    if isinstance(space, spaces.Discrete):
        return _legal(int(action) - int(space.start), mask) + int(space.start)
    parts = np.split(mask, np.cumsum(space.nvec.reshape(-1))[:-1])
    chosen = (np.asarray(action) - space.start).reshape(-1)
    legal = [_legal(int(one), part) for one, part in zip(chosen, parts, strict=True)]
    return (np.array(legal).reshape(space.shape) + space.start).astype(space.dtype)


def _legal(choice: int, mask: Mask) -> int:
    allowed = np.flatnonzero(mask)
    return choice if mask[choice] or not len(allowed) else int(allowed[choice % len(allowed)])


def advice(space: spaces.Space[Any], problem: BaseException) -> str:
    """Return advice on action masks if an environment's exception is about an illegal action, else ""."""
    if not maskable(space) or not _ILLEGAL.search(text_of(problem)):
        return ""
    return f'; if actions can be illegal, return info["{MASK}"], with 0 for each illegal action'


class LegalActions(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Replaces illegal actions by legal ones, for random play."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._masks = Masks(env.action_space, 1) if maskable(env.action_space) else None

    @property
    def masked(self) -> bool:
        """True once an info contained a mask."""
        return self._masks is not None and self._masks.active

    def reset(self, **options: Any) -> Any:
        outcome = self.env.reset(**options)
        if self._masks is not None and isinstance(outcome, tuple):
            self._masks.take(0, outcome[-1])
        return outcome

    def step(self, action: Any) -> Any:
        if self._masks is not None and self._masks.active:
            action = legal_action(self.action_space, action, self._masks.of(np.zeros(1, np.int64))[0])
        outcome = self.env.step(action)
        if self._masks is not None:
            self._masks.take(0, outcome[-1])
        return outcome


class MaskInInfo(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Moves the mask from a Dict observation into the info."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        parts = dict(env.observation_space.items())  # type: ignore[attr-defined]
        self.observation_space = spaces.Dict({key: part for key, part in parts.items() if key != MASK})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        observation, info = self.env.reset(seed=seed, options=options)
        return self._moved(observation, info)

    def step(self, action: Any) -> Any:
        observation, *rest, info = self.env.step(action)
        observation, info = self._moved(observation, info)
        return (observation, *rest, info)

    def _moved(self, observation: Any, info: Any) -> tuple[Any, dict[str, Any]]:
        seen = {key: value for key, value in observation.items() if key != MASK}
        return seen, {**info, MASK: observation[MASK]}


def mask_in_info(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """Return the environment with a mask in its Dict observations moved to the info."""
    space = env.observation_space
    masked = isinstance(space, spaces.Dict) and MASK in space.spaces and maskable(env.action_space)
    return MaskInInfo(env) if masked else env
