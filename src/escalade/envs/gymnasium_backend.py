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

from escalade.envs.closing import close
from escalade.envs.environment import Environment
from escalade.envs.headless import headless
from escalade.envs.masks import MASK, Masks, maskable
from escalade.envs.object_count import ObjectCount
from escalade.envs.observed import Misfit, check_observation, check_reset, check_step, one_bool, one_number
from escalade.envs.spaces import flatten, is_image, is_vector, observation_dtype, observation_shape
from escalade.envs.vector import SlotError
from escalade.envs.wrapping import info_number
from escalade.errors import EnvironmentFailure, InputError, in_words


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
    """

    refills = True

    def __init__(self, environment: Environment, slots: int) -> None:
        headless()  # a worker has the variables of when its server was started
        self.slots = slots
        self.alive: Callable[[], None] = lambda: None
        self._environment = environment
        self._envs: dict[int, gymnasium.Env[Any, Any]] = {}
        self._checked: dict[str, set[int]] = {"reset": set(), "step": set()}  # slots that were looked at
        self.raised: dict[int, str] = {}
        """Exceptions of the slots' environments, in words; a slot's next episode has a new environment."""
        self._count = ObjectCount(slots)
        self._seconds: dict[int, float] = {}  # for building and first reset, by slot
        self._space = environment.observation_space
        self._plain = is_vector(self._space) or is_image(self._space)
        self._shape = observation_shape(self._space)
        self._dtype = observation_dtype(self._space)
        self._discrete = isinstance(environment.action_space, spaces.Discrete)
        self.masks = Masks(environment.action_space, slots) if maskable(environment.action_space) else None
        """Legal actions of the slots; None for spaces whose actions cannot be masked."""
        self._single = environment.action_space.shape == () and not self._discrete

    @property
    def room(self) -> int:
        """Slots that may be used now; fewer than all if objects are slow to build, and nobody chose."""
        chosen = self._environment.fresh or self._environment.envs_per_worker is not None
        return self.slots if chosen else self._count.limit

    def reset(self, slots: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[Any]:
        observations = np.empty((len(slots), *self._shape), self._dtype)
        for row, (slot, seed) in enumerate(zip(slots.tolist(), seeds.tolist(), strict=True)):
            self.alive()
            began = time.monotonic()
            try:
                if slot not in self._envs or slot in self.raised or self._environment.fresh:
                    self._renew(slot)
                given = self._envs[slot].reset(seed=seed)
                if slot not in self._checked["reset"]:
                    check_reset(given, self._environment.id)
                    self._check(slot, given[0], "reset")
                    self._seconds[slot] = time.monotonic() - began
                observations[row] = self._numbers(given[0], "reset")
                if self.masks is not None:
                    self.masks.take(slot, given[1])
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
        envs, broken, checked = self._envs, self.raised, self._checked["step"]
        masks, masked = self.masks, self.masks is not None and self.masks.given
        # Plain ints, with which environments in Python calculate faster than with numpy's.
        chosen = actions.tolist() if self._discrete else actions
        if self._single:
            chosen = [np.asarray(action) for action in actions]  # arrays without dimensions
        for row, slot in enumerate(slots.tolist()):
            if broken and slot in broken:  # its reset has raised
                continue
            try:
                action = chosen[row]
                given: Any = envs[slot].step(action) if slot in checked else self._first_step(slot, action)
                observation, reward, terminated, truncated, info = given
                observations[row] = self._numbers(observation, "step")
                rewards[row] = reward if isinstance(reward, float) else one_number(reward)
                if type(terminated) is not bool or type(truncated) is not bool:  # NumPy's, most often
                    terminated = one_bool(terminated, "terminated")
                    truncated = one_bool(truncated, "truncated")
                ended[row] = terminated or truncated
                if masks is not None and (masked or MASK in info):
                    masks.take(slot, info)
            except Misfit as problem:
                raise InputError(f"environment {self._environment.id}: {problem} (in `step`)") from None
            except (InputError, KeyboardInterrupt):
                raise
            except BaseException as problem:  # noqa: BLE001 - _end_episode raises it, unless `on_error` forgives
                self._end_episode(row, slot, problem)
        if self._environment.reward_info is not None:
            components = [
                math.nan if slot in broken else cast(Any, envs[slot]).component for slot in slots.tolist()
            ]
            rewards = np.stack([rewards, components], axis=1)
        if broken:
            failed = np.isin(slots, list(broken))
            observations[failed], rewards[failed], ended[failed] = 0, np.nan, True
        return observations, rewards, ended

    def _first_step(self, slot: int, action: Any) -> Any:
        """Take the first step of a slot, and check and time it."""
        began = time.monotonic()
        try:
            given = self._envs[slot].step(action)
        except (ValueError, TypeError):
            # A wrapper may unpack five values before this class can see that the environment returns others.
            check_step(self._envs[slot].unwrapped.step(action), self._environment.id)
            raise
        self._count.took(self._seconds[slot] + time.monotonic() - began)
        check_step(given, self._environment.id)
        self._check(slot, given[0], "step")
        return given

    def _check(self, slot: int, observation: Any, method: str) -> None:
        """Compare the slot's first observation of its kind with the space; of later ones the shape alone."""
        check_observation(self._space, observation, self._environment.id, method)
        self._checked[method].add(slot)

    def _numbers(self, observation: Any, method: str) -> Any:
        """The observation as the policy sees it, before it is in its row."""
        if not self._plain:
            return flatten(self._space, observation)
        if np.shape(observation) != self._shape:  # numpy would spread one number over the row
            check_observation(self._space, observation, self._environment.id, method)
        return observation

    def _end_episode(self, row: int, slot: int, problem: BaseException) -> None:
        self.raised[slot] = in_words(problem)
        if not self._environment.forgiving:
            raise SlotError(row, problem) from problem

    def _renew(self, slot: int) -> None:
        """Build the slot's environment: anew, where it has one."""
        if slot in self._envs:
            self._close(slot)
        try:
            self._envs[slot] = self._make()
        except Exception as problem:
            if self._environment.forgiving or not self._envs.keys() - {slot}:
                raise
            raise EnvironmentFailure(
                f"environment {self._environment.id} could not be built once more beside "
                f"{len(self._envs.keys() - {slot})} in the same process ({in_words(problem)}): "
                "`envs_per_worker=1` uses one for all episodes of a worker"
            ) from problem
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

    def _make(self) -> gymnasium.Env[Any, Any]:
        env, key = self._environment.make(), self._environment.reward_info
        if self._environment.info_keys:
            env = LastInfo(env, self._environment)
        return env if key is None else InfoReward(env, key)

    def infos(self, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        numbers = np.full((len(slots), len(self._environment.info_keys)), np.nan)
        for row, slot in enumerate(slots.tolist()):
            if slot not in self.raised:
                numbers[row] = self._envs[slot].get_wrapper_attr("numbers")
        return numbers

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


class InfoReward(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps one number of each step's info: ``component``, that called ``key`` in the last step's."""

    def __init__(self, env: gymnasium.Env[Any, Any], key: str) -> None:
        super().__init__(env)
        self.key = key
        self.component = 0.0

    def step(self, action: Any) -> Any:
        given = self.env.step(action)
        self.component = info_number(given[4], self.key)
        return given


class LastInfo(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps ``numbers`` of the last step's info, one a key: NaN where it has None, or nothing, of that name.

    They are read in each step, for what an environment gives may change in the next, or be another's too.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], environment: Environment) -> None:
        super().__init__(env)
        self.keys = {key: environment.asked_by(key) for key in environment.info_keys}
        self.numbers = (math.nan,) * len(self.keys)

    def step(self, action: Any) -> Any:
        given = self.env.step(action)
        info = given[4]
        self.numbers = tuple(
            math.nan if info.get(key) is None else info_number(info, key, option)
            for key, option in self.keys.items()
        )
        return given
