"""Atari games stepped through the emulator itself: what Gymnasium's wrappers give, with less around it.

An episode has the same observations, rewards and end as Gymnasium's, bit for bit. What is spared: a
picture of every skipped frame, and loading the game anew for each episode, which costs as much as two
hundred steps and changes nothing but the draws of sticky actions (benchmarks/pixels.md). ale-py's own
AtariVectorEnv does load it, and cannot step some of its games while others have ended: in episodes of 500
steps it gives a fifth to a third fewer of them.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from escalade.envs.environment import Environment
from escalade.envs.pixels.frames import Frames
from escalade.envs.pixels.wrappers import NOOP, is_atari
from escalade.envs.spaces import observation_dtype, observation_shape

_OTHERS = ("sound_obs", "continuous")  # arguments that change what a step takes or gives


def supports(environment: Environment) -> bool:
    """True for an Atari game with discrete actions, a fixed skip and nothing around it."""
    given = environment.spec.kwargs | environment.kwargs
    return (
        is_atari(environment.spec)
        and environment.spec.max_episode_steps is None
        and not environment.spec.additional_wrappers
        and environment.early_end is None
        and not environment.info_keys
        and isinstance(given.get("frameskip", 4), int)
        and not any(given.get(name) for name in _OTHERS)
    )


def make_vector(environment: Environment, slots: int) -> AleVector:
    """Slots for up to ``slots`` concurrent episodes."""
    return AleVector(environment, slots)


class AleVector:
    """Slots that each hold one emulator, built when the slot is first used."""

    refills = True

    def __init__(self, environment: Environment, slots: int) -> None:
        self.slots = slots
        self._environment = environment
        self._games: list[_Game] = []
        space = environment.observation_space
        self._shape = observation_shape(space)
        self._dtype = observation_dtype(space)

    def reset(self, slots: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[Any]:
        observations = np.empty((len(slots), *self._shape), self._dtype)
        for row, (slot, seed) in enumerate(zip(slots.tolist(), seeds.tolist(), strict=True)):
            while len(self._games) <= slot:
                self._games.append(_Game(self._environment))
            observations[row] = self._games[slot].reset(seed).reshape(self._shape)
        return observations

    def step(
        self, slots: NDArray[np.int64], actions: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        count = len(slots)
        observations = np.empty((count, *self._shape), self._dtype)
        rewards, ended = np.empty(count), np.empty(count, np.bool_)
        for row, (slot, action) in enumerate(zip(slots.tolist(), actions.tolist(), strict=True)):
            game = self._games[slot]
            rewards[row], ended[row] = game.step(action)
            observations[row] = game.stack.reshape(self._shape)
        return observations, rewards, ended

    def ram(self, slots: NDArray[np.int64]) -> NDArray[np.uint8]:
        return np.stack([self._games[slot].ram() for slot in slots.tolist()])

    def close(self) -> None:
        for game in self._games:
            game.close()
        self._games.clear()


class _Game:
    """One emulator, and the latest frames of its episode: (frames, channels, H, W) or (frames, 128)."""

    def __init__(self, environment: Environment) -> None:
        self._env = environment.make()
        self._atari = cast(Any, self._env.unwrapped)
        self._ale = self._atari.ale
        self._frames: Frames = environment.frames
        self._actions = self._atari._action_set
        self._view = _view(self._atari, self._frames)
        self.stack = np.zeros((self._frames.frame_stack, *self._view.shape), np.uint8)
        self._limit = environment.max_episode_steps
        # Pooled frames are skipped one by one; others as Gymnasium's environment skips them.
        self._skip = self._frames.pooled_skip
        self._inner = int(self._atari._frameskip)
        self._sticky = self._ale.getFloat("repeat_action_probability") > 0
        # A game is loaded when it is made. Without sticky actions nothing is drawn, so the seed is all one.
        self._loaded = None if self._sticky else self._ale.cloneState(include_rng=True)

    def close(self) -> None:
        self._env.close()

    def ram(self) -> NDArray[np.uint8]:
        """The memory of the game, shape (128,)."""
        return np.asarray(self._ale.getRAM())

    def reset(self, seed: int) -> NDArray[np.uint8]:
        """Begin an episode; the stack of frames."""
        self._start(seed)
        self._steps = 0
        self.stack[:] = self._view.image()
        return self.stack

    def _start(self, seed: int) -> None:
        """Reset, and the no-ops of the seed."""
        self._load(seed)
        if self._frames.noop_max:
            # As Gymnasium's wrapper draws it from the environment's generator, after its seed.
            drawn, _ = seeding.np_random(int(np.random.SeedSequence(seed).generate_state(2)[0]))
            for _ in range(int(drawn.integers(1, self._frames.noop_max + 1))):
                self._act(NOOP)
                if self._over():
                    self._load(seed)
        self._view.begin()

    def step(self, action: int) -> tuple[float, bool]:
        """One step of a policy; its reward, and whether the episode ended."""
        reward = self._advance(action)
        if len(self.stack) > 1:
            self.stack[:-1] = self.stack[1:]
        self.stack[-1] = self._view.image()
        self._steps += 1
        return reward, self._ended or (self._limit is not None and self._steps >= self._limit)

    def _load(self, seed: int) -> None:
        """Put the game at its start, as Gymnasium's environment does by loading it anew."""
        if self._loaded is not None:
            self._ale.restoreState(self._loaded)
        else:
            self._atari.seed_game(seed)
            self._atari.load_game()
        self._ale.reset_game()

    def _advance(self, action: int) -> float:
        """Skipped frames included; leaves in ``_ended`` whether the episode did."""
        total = 0.0
        for frame in range(self._skip):
            total += self._act(action)
            self._ended = self._over()
            if self._ended:
                if self._frames.off:  # Gymnasium's wrapper of frames keeps the picture before instead
                    self._view.look()
                break
            if frame == self._skip - 2:
                self._view.look_before()
            elif frame == self._skip - 1:
                self._view.look()
        return total

    def _act(self, action: int) -> float:
        """One step of Gymnasium's environment."""
        chosen, reward = self._actions[action], 0.0
        for _ in range(self._inner):
            reward += self._ale.act(chosen, 1.0)
        return reward

    def _over(self) -> bool:
        return bool(self._ale.game_over(with_truncation=False) or self._ale.game_truncated())


class _Memory:
    """The 128 bytes of a game's memory."""

    shape = (128,)

    def __init__(self, ale: Any) -> None:
        self._ale = ale

    def look(self) -> None:
        """Memory is read when it is asked for."""

    begin = look_before = look

    def image(self) -> NDArray[np.uint8]:
        return np.asarray(self._ale.getRAM())


class _Screen:
    """A game's screen, pooled, cropped and resized; channels first."""

    def __init__(self, ale: Any, frames: Frames, grey: bool) -> None:
        self._size, self._grey = frames.size, grey
        height, width = ale.getScreenDims()
        raw = (height, width) if grey else (height, width, 3)
        self._latest, self._before = np.zeros(raw, np.uint8), np.zeros(raw, np.uint8)
        self._draw = ale.getScreenGrayscale if grey else ale.getScreenRGB
        self._pools = frames.max_pool
        top, bottom, left, right = frames.kept(height, width)
        self._part = (slice(top, bottom), slice(left, right))
        cut = (bottom - top, right - left)
        self.shape = (1 if grey else 3, *(self._size or cut))

    def look(self) -> None:
        """Take the frame that is on the screen as the last."""
        self._draw(self._latest)

    def look_before(self) -> None:
        """Take it as the last but one."""
        self._draw(self._before)

    def begin(self) -> None:
        """Take the first frame of an episode, before which there was none."""
        self._before.fill(0)
        self.look()

    def image(self) -> NDArray[np.uint8]:
        """The image that a policy sees, shape (C, H, W)."""
        if self._pools:
            np.maximum(self._latest, self._before, out=self._latest)
        part = self._latest[self._part]
        if self._size is not None:
            import cv2

            part = cv2.resize(np.ascontiguousarray(part), self._size[::-1], interpolation=cv2.INTER_AREA)
        image: NDArray[np.uint8] = part[None] if self._grey else np.moveaxis(part, -1, 0)
        return image


def _view(atari: Any, frames: Frames) -> Any:
    if len(atari.observation_space.shape) == 1:
        return _Memory(atari.ale)
    return _Screen(atari.ale, frames, frames.grayscale or len(atari.observation_space.shape) == 2)
