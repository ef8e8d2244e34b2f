"""Atari games with processed frames, a faster equivalent of Gymnasium's wrappers.

Observations, rewards and ends of an episode are exactly those of Gymnasium's wrappers. If the game has no
other wrappers, skipped frames are not drawn, and the game is not reloaded for each episode. Reloading costs
as much as two hundred steps and only changes the draws of sticky actions (benchmarks/pixels.md). ale-py's own
AtariVectorEnv reloads it and cannot step some of its games after others have ended. In episodes of 500 steps
its rate of steps is lower by a fifth to a third.
"""

from __future__ import annotations

import importlib
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escalade.envs.pixels.wrappers import NOOP

Env = gymnasium.Env[Any, Any]


class Game(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A game whose frames are skipped, pooled, cropped, resized and stacked; channels first.

    Args:
        env: the game, possibly with wrappers of the user.
        view: source of observations.
        skip: number of steps of ``env`` per step.
        stack: number of latest frames in an observation.
        noops: an episode starts with 1 to this many no-ops.
        shows_end: the last observation of an episode is the last frame instead of the one before.
    """

    def __init__(
        self, env: Env, view: Memory | Screen, skip: int, stack: int, noops: int, shows_end: bool
    ) -> None:
        super().__init__(env)
        self._view, self._skip, self._noops, self._shows_end = view, skip, noops, shows_end
        self._atari = cast(Any, env.unwrapped)
        self._ale, own_skip = self._atari.ale, self._atari._frameskip
        direct = env is env.unwrapped and isinstance(own_skip, int) and not self._atari.continuous
        self._repeats = range(own_skip) if direct else None
        """Frames of a step of the emulator, or None if steps are those of ``env``."""
        # A game is loaded when it is made. Without sticky actions, the emulator does not use its seed.
        sticky = self._ale.getFloat("repeat_action_probability") > 0 if direct else True
        self._loaded = None if sticky else self._ale.cloneState(include_rng=True)
        self._frames = np.zeros((stack, *view.shape), np.uint8)
        channels, *rest = view.shape
        shape = (stack * channels, *rest) if rest or stack == 1 else (stack, channels)
        self.observation_space = spaces.Box(0, 255, shape, np.uint8)
        self._shape = shape

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self._restart(seed, options)
        noops = int(self._atari.np_random.integers(1, self._noops + 1)) if self._noops else 0
        for _ in range(noops):
            _, terminated, truncated = self._act(NOOP)
            if terminated or truncated:
                self._restart(seed, options)
        self._view.start()
        self._frames[:] = self._view.image()
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        total = 0.0
        for frame in range(self._skip):
            reward, terminated, truncated = self._act(action)
            total += reward
            if terminated or truncated:
                if self._shows_end:  # Gymnasium's wrapper of frames returns the previous frame instead
                    self._view.read_frame()
                break
            if frame == self._skip - 2:
                self._view.read_previous_frame()
            elif frame == self._skip - 1:
                self._view.read_frame()
        if len(self._frames) > 1:
            self._frames[:-1] = self._frames[1:]
        self._frames[-1] = self._view.image()
        return self._observation(), total, terminated, truncated, self._info()

    def keep(self) -> tuple[Any, Any, NDArray[np.uint8]]:
        """Return the state of the episode: emulator and environment with their generators, stacked frames."""
        drawn = self._atari.np_random.bit_generator.state
        return self._ale.cloneState(include_rng=True), drawn, self._frames.copy()

    def go_on(self, state: tuple[Any, Any, NDArray[np.uint8]]) -> NDArray[np.uint8]:
        """Restore a state of :meth:`keep`, from this game or an equal one, and return its observation."""
        emulator, self._atari.np_random.bit_generator.state, self._frames[:] = state
        if self._loaded is None:  # the emulator's state lacks its last action, which may stick: clear it
            self._ale.reset_game()
        self._ale.restoreState(emulator)
        self._env_info: dict[str, Any] = {}
        return self._observation()

    def _restart(self, seed: int | None, options: dict[str, Any] | None) -> None:
        if self._loaded is None or seed is None:
            self._env_info = self.env.reset(seed=seed, options=options)[1]
            return
        self._atari.seed_game(seed)
        self._ale.restoreState(self._loaded)
        self._ale.reset_game()

    def _act(self, action: Any) -> tuple[float, bool, bool]:
        """Take one step of ``env`` and return reward, terminated and truncated. The emulator is not drawn."""
        if self._repeats is None:
            _, reward, terminated, truncated, self._env_info = self.env.step(action)
            return float(reward), terminated, truncated
        chosen, total, ale = self._atari._action_set[action], 0.0, self._ale
        for _ in self._repeats:
            total += ale.act(chosen, 1.0)
        return total, ale.game_over(with_truncation=False), ale.game_truncated()

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = self._env_info if self._repeats is None else self._atari._get_info()
        return info

    def _observation(self) -> NDArray[np.uint8]:
        return self._frames.reshape(self._shape).copy()


class Memory:
    """The 128 bytes of a game's memory, used as the image."""

    shape = (128,)

    def __init__(self, ale: Any) -> None:
        self._ale = ale

    def read_frame(self) -> None:
        """Do nothing: :meth:`image` reads the memory."""

    start = read_previous_frame = read_frame

    def image(self) -> NDArray[np.uint8]:
        return np.asarray(self._ale.getRAM())


class Screen:
    """A game's screen, pooled, cropped and resized; channels first.

    Args:
        ale: the emulator.
        raw: shape of its images: (H, W) if gray, otherwise (H, W, 3).
        part: rows and columns to use.
        size: height and width after resizing, or None.
        pools: whether an image is the maximum of the last two frames.
    """

    def __init__(
        self,
        ale: Any,
        raw: tuple[int, ...],
        part: tuple[slice, slice],
        size: tuple[int, int] | None,
        pools: bool,
    ) -> None:
        self._part, self._size, self._pools = part, size, pools
        self._cv2: Any = importlib.import_module("cv2") if size else None
        self._latest, self._before = np.zeros(raw, np.uint8), np.zeros(raw, np.uint8)
        self._draw = ale.getScreenGrayscale if len(raw) == 2 else ale.getScreenRGB
        self.shape = (3 if raw[2:] else 1, *(size or self._latest[part].shape[:2]))

    def read_frame(self) -> None:
        """Read the current frame as the last one."""
        self._draw(self._latest)

    def read_previous_frame(self) -> None:
        """Read the current frame as the second to last one."""
        self._draw(self._before)

    def start(self) -> None:
        """Read the first frame of an episode."""
        self._before.fill(0)
        self.read_frame()

    def image(self) -> NDArray[np.uint8]:
        """Return the processed image, shape (C, H, W)."""
        if self._pools:
            np.maximum(self._latest, self._before, out=self._latest)
        part = self._latest[self._part]
        if self._size is not None:
            cv2 = self._cv2
            part = cv2.resize(np.ascontiguousarray(part), self._size[::-1], interpolation=cv2.INTER_AREA)
        return part[None] if part.ndim == 2 else np.moveaxis(part, -1, 0)
