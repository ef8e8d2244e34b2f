"""Any Gymnasium environment, many per worker, stepped in lockstep."""

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
from escalade.envs.wrapping import Misfit, info_number, one_bool, one_number
from escalade.errors import EnvironmentFailure, InputError, in_words

_SLOW_SECONDS = 0.2  # for an object: building, first reset and first step


def supports(environment: Environment) -> bool:
    """Every environment that resolves."""
    return True


def make_vector(environment: Environment, slots: int) -> GymnasiumVector:
    """Slots for up to ``slots`` concurrent episodes."""
    return GymnasiumVector(environment, slots)


class GymnasiumVector:
    """Slots that each hold one environment, built when the slot is first used.

    An episode starts with ``reset(seed=...)``, which makes it a function of its seed in every
    environment that keeps Gymnasium's contract. For others, where ``environment.fresh`` is set, a
    slot builds a new environment for every episode.

    Where ``environment.forgiving`` is set, an episode whose environment raises ends in that step with a
    reward of NaN, or in its first where that was ``reset``; the slot's next one has a new environment.

    A worker whose second object took long to build reuses these two. Episodes do not depend on their number.
    """

    refills = True

    def __init__(self, environment: Environment, slots: int) -> None:
        headless()  # a worker has the variables of when its server was started
        self.slots = slots
        self.alive: Callable[[], None] = lambda: None
        self._environment = environment
        self._envs: dict[int, gymnasium.Env[Any, Any]] = {}
        self.raised: dict[int, str] = {}
        """Exceptions of the slots' environments, in words; a slot's next episode has a new environment."""
        chosen = environment.fresh or environment.num_envs is not None
        self.room = slots if chosen else 1
        """Slots that may be used now; fewer than all if objects are slow to build, and nobody chose."""
        self._began: dict[int, float] = {}  # when a slot built its first object, until that has stepped
        self._space = environment.observation_space
        self._plain = is_vector(self._space) or is_image(self._space)
        self._shape = observation_shape(self._space)
        self._dtype = observation_dtype(self._space)
        self._discrete = isinstance(environment.action_space, spaces.Discrete)
        self.masks = Masks(environment.action_space, slots) if maskable(environment.action_space) else None
        """Legal actions of the slots; None for spaces whose actions cannot be masked."""
        self._single = environment.action_space.shape == () and not self._discrete
        self._informs = bool(environment.info_keys) or environment.reward_info is not None
        self._infos = np.full((slots, len(environment.info_keys)), np.nan)
        self._components = np.full(slots, np.nan)  # of rewards: the entry ``reward_info`` of the last step

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
            # sys.exit is one of them, and so are panics of Rust
            except BaseException as problem:  # noqa: BLE001 - _end_episode raises it, unless `on_error` forgives
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
        masked = masks is not None and masks.given
        # Plain ints, with which environments in Python calculate faster than with numpy's.
        chosen = actions.tolist() if self._discrete else actions
        if self._single:
            chosen = [np.asarray(action) for action in actions]  # arrays without dimensions
        for row, slot in enumerate(slots.tolist()):
            if broken and slot in broken:  # its reset has raised
                continue
            try:
                given: Any = envs[slot].step(chosen[row])
                observation, reward, terminated, truncated, info = given
                observations[row] = self._numbers(observation, "step")
                rewards[row] = reward if isinstance(reward, float) else one_number(reward)
                if type(terminated) is not bool or type(truncated) is not bool:  # NumPy's, most often
                    terminated = one_bool(terminated, "terminated")
                    truncated = one_bool(truncated, "truncated")
                ended[row] = terminated or truncated
                if masks is not None and (masked or MASK in info):
                    masks.take(slot, info)
                if self._informs:
                    self._take_numbers(slot, info)
                if slot in began:
                    self._make_room(time.monotonic() - began.pop(slot))
            except Misfit as problem:
                raise InputError(f"environment {self._environment.id}: {problem} (in `step`)") from None
            except (InputError, KeyboardInterrupt):
                raise
            except BaseException as problem:  # noqa: BLE001 - _end_episode raises it, unless `on_error` forgives
                self._end_episode(row, slot, problem)
        if self._environment.reward_info is not None:
            rewards = np.stack([rewards, self._components[slots]], axis=1)
        if broken:
            failed = np.isin(slots, list(broken))
            observations[failed], rewards[failed], ended[failed] = 0, np.nan, True
        return observations, rewards, ended

    def _numbers(self, observation: Any, method: str) -> Any:
        """The observation as the policy sees it, before it is in its row.

        Raises:
            InputError: it has another shape than its space, or real numbers for whole ones.
        """
        given = observation if self._plain else flatten(self._space, observation)
        # numpy would spread one number over the row
        wrong = f"shape {np.shape(given)}" if np.shape(given) != self._shape else ""
        other = ""
        if self._dtype is np.uint8 and np.asarray(given).dtype.kind == "f":
            wrong = str(np.asarray(given).dtype)
            other = f", or give `wrappers` gymnasium.wrappers:DtypeObservation('{wrong}')"
        if wrong:
            raise InputError(
                f"environment {self._environment.id}: `{method}` gave an observation of {wrong}, where its "
                f"space has {self._shape} of {self._space.dtype}: fix the environment or its space{other}"
            )
        return given

    def _take_numbers(self, slot: int, info: dict[str, Any]) -> None:
        """Read what is asked for of a step's info: the environment may change it in the next."""
        environment = self._environment
        for column, key in enumerate(environment.info_keys):
            known = info.get(key) is not None
            self._infos[slot, column] = (
                info_number(info, key, environment.asked_by(key)) if known else math.nan
            )
        if environment.reward_info is not None:
            self._components[slot] = info_number(info, environment.reward_info)

    def _make_room(self, seconds: float) -> None:
        """Let a second object be built after the first, and all after one that took few seconds.

        The first may have taken long for an import, or another cost of the process.
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
        """Build the slot's environment: anew, where it has one."""
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
                f"environment {self._environment.id} could not be built once more beside {len(others)} in "
                f"the same process ({in_words(problem)}): `num_envs=1` uses one for all episodes of a "
                "worker"
            ) from problem
        if others and _innermost(made) is _innermost(others[0]):
            raise InputError(
                f"environment {self._environment.id}: the same object was returned twice, and episodes run "
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
        except BaseException:  # noqa: BLE001, S110 - once more what it has raised, a panic of Rust perhaps
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
        self.alive = lambda: None  # what it was leads to the run, which holds these slots


def _innermost(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """The last environment that wrappers of any class hold as ``env`` or ``_env``."""
    while isinstance(inner := vars(env).get("env", vars(env).get("_env")), gymnasium.Env):
        env = inner
    return env
