"""The backend for any Gymnasium environment: steps many of them per worker in lockstep."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escalade.envs.environment import Environment
from escalade.envs.masks import MASK, Masks, maskable
from escalade.envs.process import close, headless
from escalade.envs.spaces import flatten, is_image, is_vector, observation_dtype, observation_shape
from escalade.envs.vector import SlotError
from escalade.envs.wrapping import InvalidValue, info_number, one_bool, one_number
from escalade.errors import EnvironmentFailure, InputError, in_words

_SLOW_SECONDS = 0.2  # to build an object, reset it and step it once


def supports(environment: Environment) -> bool:
    """Return True: this backend runs every environment that resolves."""
    return True


def make_vector(environment: Environment, slots: int) -> GymnasiumVector:
    """Make a vector for up to ``slots`` concurrent episodes."""
    return GymnasiumVector(environment, slots)


class GymnasiumVector:
    """Slots with one environment each, which is built when the slot is first used.

    An episode starts with ``reset(seed=...)``, which makes it a function of its seed in every environment
    that follows Gymnasium's API. For others, ``environment.fresh`` builds a new object for every episode.

    With ``environment.forgiving``, an episode whose environment raises ends in that step with a reward of
    NaN (in its first step if ``reset`` raised). The slot's next episode has a new environment.

    If the second object is slow to build, a worker uses only two. Episodes do not depend on their number.
    """

    refills = True

    def __init__(self, environment: Environment, slots: int) -> None:
        headless()  # a worker has the environment variables from the start of its server
        self.slots = slots
        self.alive: Callable[[], None] = lambda: None
        self._environment = environment
        self._envs: dict[int, gymnasium.Env[Any, Any]] = {}
        self.raised: dict[int, str] = {}
        """Exceptions of the slots' environments, as text. The slot's next episode has a new environment."""
        chosen = environment.fresh or environment.num_envs is not None
        self.room = slots if chosen else 1
        """Usable slots: fewer than all if objects are slow to build and the number was not set."""
        self._began: dict[
            int, float
        ] = {}  # time at which a slot built its first object; removed after a step
        self._space = environment.observation_space
        self._plain = is_vector(self._space) or is_image(self._space)
        self._shape = observation_shape(self._space)
        self._dtype = observation_dtype(self._space)
        self._discrete = isinstance(environment.action_space, spaces.Discrete)
        self.masks = Masks(environment.action_space, slots) if maskable(environment.action_space) else None
        """Legal actions of the slots, or None for spaces whose actions cannot be masked."""
        self._single = environment.action_space.shape == () and not self._discrete
        self._informs = bool(environment.info_keys) or environment.reward_info is not None
        self._infos = np.full((slots, len(environment.info_keys)), np.nan)
        self._components = np.full(slots, np.nan)  # the entry ``reward_info`` of the last step

    def reset(self, slots: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[Any]:
        observations = np.empty((len(slots), *self._shape), self._dtype)
        for row, (slot, seed) in enumerate(zip(slots.tolist(), seeds.tolist(), strict=True)):
            self.alive()
            try:
                if slot not in self._envs or slot in self.raised or self._environment.fresh:
                    self._renew(slot)
                observation, info = self._envs[slot].reset(seed=seed)
                observations[row] = self._numbers(observation, "reset")
                if self.masks is not None:
                    self.masks.take(slot, info)
            except (KeyboardInterrupt, InputError):
                raise
            # BaseException includes SystemExit and panics of Rust.
            except BaseException as problem:  # noqa: BLE001 - _end_episode raises it unless ``forgiving``
                self._end_episode(row, slot, problem)
                observations[row] = 0
        return observations

    def step(
        self, slots: NDArray[np.int64], actions: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        count = len(slots)
        observations = np.empty((count, *self._shape), self._dtype)
        rewards, ended = np.empty(count), np.empty(count, np.bool_)
        envs, broken, began = self._envs, self.raised, self._began
        masks = self.masks
        masked = masks is not None and masks.active
        # Plain ints: Python code is faster with them than with NumPy scalars.
        chosen = actions.tolist() if self._discrete else actions
        if self._single:
            chosen = [np.asarray(action) for action in actions]  # 0-d arrays
        for row, slot in enumerate(slots.tolist()):
            if broken and slot in broken:  # its reset raised
                continue
            try:
                outcome: Any = envs[slot].step(chosen[row])
                observation, reward, terminated, truncated, info = outcome
                observations[row] = self._numbers(observation, "step")
                rewards[row] = reward if isinstance(reward, float) else one_number(reward)
                if type(terminated) is not bool or type(truncated) is not bool:  # usually NumPy's
                    terminated = one_bool(terminated, "terminated")
                    truncated = one_bool(truncated, "truncated")
                ended[row] = terminated or truncated
                if masks is not None and (masked or MASK in info):
                    masks.take(slot, info)
                if self._informs:
                    self._read_info(slot, info)
                if slot in began:
                    self._make_room(time.monotonic() - began.pop(slot))
            except InvalidValue as problem:
                raise InputError(f"environment {self._environment.id}: {problem} (in `step`)") from None
            except (InputError, KeyboardInterrupt):
                raise
            except BaseException as problem:  # noqa: BLE001 - _end_episode raises it unless ``forgiving``
                self._end_episode(row, slot, problem)
        if self._environment.reward_info is not None:
            rewards = np.stack([rewards, self._components[slots]], axis=1)
        if broken:
            failed = np.isin(slots, list(broken))
            observations[failed], rewards[failed], ended[failed] = 0, np.nan, True
        return observations, rewards, ended

    def _numbers(self, observation: Any, method: str) -> Any:
        """Return the observation as the policy reads it.

        Raises:
            InputError: the shape differs from the space, or floats are returned for integers.
        """
        read = observation if self._plain else flatten(self._space, observation)
        # NumPy would broadcast a single number to the row.
        wrong = f"shape {np.shape(read)}" if np.shape(read) != self._shape else ""
        wrapper = ""
        if self._dtype is np.uint8 and np.asarray(read).dtype.kind == "f":
            wrong = str(np.asarray(read).dtype)
            wrapper = f", or add `wrappers` gymnasium.wrappers:DtypeObservation('{wrong}')"
        if wrong:
            raise InputError(
                f"environment {self._environment.id}: `{method}` returned an observation of {wrong}, but its "
                f"space has {self._shape} of {self._space.dtype}: fix the environment or its space{wrapper}"
            )
        return read

    def _read_info(self, slot: int, info: dict[str, Any]) -> None:
        """Copy the requested entries of a step's info, which the environment may change in the next step."""
        environment = self._environment
        for column, key in enumerate(environment.info_keys):
            known = info.get(key) is not None
            self._infos[slot, column] = (
                info_number(info, key, environment.option_of(key)) if known else math.nan
            )
        if environment.reward_info is not None:
            self._components[slot] = info_number(info, environment.reward_info)

    def _make_room(self, seconds: float) -> None:
        """Allow a second object after the first, and all slots after one that took few ``seconds``.

        The first object may have been slow because of imports and other costs of the process.
        """
        if self.room == 1:
            self.room = min(2, self.slots)
        elif seconds < _SLOW_SECONDS:
            self.room = self.slots

    def _end_episode(self, row: int, slot: int, problem: BaseException) -> None:
        self.raised[slot] = in_words(problem)
        self._infos[slot] = math.nan
        if not self._environment.forgiving:
            raise SlotError(row, problem) from problem

    def _renew(self, slot: int) -> None:
        """Build the slot's environment, and close its previous one."""
        if slot in self._envs:
            self._close(slot)
        else:
            self._began[slot] = time.monotonic()
        others = [env for place, env in self._envs.items() if place != slot]
        try:
            made = self._environment.make()
        except Exception as problem:
            if self._environment.forgiving or not others:
                raise
            raise EnvironmentFailure(
                f"environment {self._environment.id} could not be built again beside {len(others)} in the "
                f"same process ({in_words(problem)}): `num_envs=1` uses one object for all episodes of a "
                "worker"
            ) from problem
        if others and _innermost(made) is _innermost(others[0]):
            raise InputError(
                f"environment {self._environment.id}: the same object was returned twice, but episodes run "
                "side by side: build a new object in every call"
            )
        self._envs[slot] = made
        self.raised.pop(slot, None)

    def _close(self, slot: int) -> None:
        if slot not in self.raised:
            close(self._envs[slot])
            return
        try:
            self._envs[slot].close()
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001, S110 - probably the same exception again, such as a panic of Rust
            pass

    def infos(self, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._infos[slots]

    def ram(self, slots: NDArray[np.int64]) -> NDArray[np.uint8]:
        memory = np.zeros((len(slots), 128), np.uint8)
        for row, slot in enumerate(slots.tolist()):
            if slot not in self.raised:
                memory[row] = cast(Any, self._envs[slot].unwrapped).ale.getRAM()
        return memory

    def close(self) -> None:
        for slot in self._envs:
            self._close(slot)
        self._envs.clear()
        self.alive = lambda: None  # breaks a reference cycle with the run


def _innermost(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """Return the innermost environment, which wrappers of any class store as ``env`` or ``_env``."""
    while isinstance(inner := vars(env).get("env", vars(env).get("_env")), gymnasium.Env):
        env = inner
    return env
