"""An Atari game as a policy sees it: what Gymnasium's wrappers give, with less around it.

An episode has the same observations, rewards and end as theirs, bit for bit. What is spared, if nothing else
is wrapped around the game: a picture of every skipped frame, and loading the game anew for each episode,
which costs as much as two hundred steps and changes nothing but the draws of sticky actions
(benchmarks/pixels.md). ale-py's own AtariVectorEnv does load it, and cannot step some of its games while
others have ended: in episodes of 500 steps it gives a fifth to a third fewer of them.
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
        env: the game, perhaps in wrappers of the user's.
        view: what a policy sees of it.
        skip: steps of ``env`` that are one here.
        stack: the latest frames that are an observation.
        noops: an episode starts with 1 to this many no-ops.
        shows_end: the last observation of a game that is over is its last frame, not the one before.
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
        """The frames of a step by the emulator itself; None if a step is that of ``env``."""
        # A game is loaded when it is made. Without sticky actions nothing is drawn, so the seed is all one.
        sticky = self._ale.getFloat("repeat_action_probability") > 0 if direct else True
        self._loaded = None if sticky else self._ale.cloneState(include_rng=True)
        self._frames = np.zeros((stack, *view.shape), np.uint8)
        channels, *rest = view.shape
        shape = (stack * channels, *rest) if rest or stack == 1 else (stack, channels)
        self.observation_space = spaces.Box(0, 255, shape, np.uint8)
        self._shape = shape

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self._begin(seed, options)
        noops = int(self._atari.np_random.integers(1, self._noops + 1)) if self._noops else 0
        for _ in range(noops):
            _, terminated, truncated = self._act(NOOP)
            if terminated or truncated:
                self._begin(seed, options)
        self._view.begin()
        self._frames[:] = self._view.image()
        return self._seen(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        total = 0.0
        for frame in range(self._skip):
            reward, terminated, truncated = self._act(action)
            total += reward
            if terminated or truncated:
                if self._shows_end:  # Gymnasium's wrapper of frames keeps the picture before instead
                    self._view.look()
                break
            if frame == self._skip - 2:
                self._view.look_before()
            elif frame == self._skip - 1:
                self._view.look()
        if len(self._frames) > 1:
            self._frames[:-1] = self._frames[1:]
        self._frames[-1] = self._view.image()
        return self._seen(), total, terminated, truncated, self._info()

    def keep(self) -> tuple[Any, NDArray[np.uint8]]:
        """The state of the episode: the emulator's with its generator, and the stacked frames."""
        return self._ale.cloneState(include_rng=True), self._frames.copy()

    def go_on(self, state: tuple[Any, NDArray[np.uint8]]) -> NDArray[np.uint8]:
        """Go on from a state of :meth:`keep`, of this game's or of another like it; its observation."""
        emulator, self._frames[:] = state
        self._ale.restoreState(emulator)
        self._given: dict[str, Any] = {}
        return self._seen()

    def _begin(self, seed: int | None, options: dict[str, Any] | None) -> None:
        """Put the game at its start."""
        if self._loaded is None or seed is None:
            self._given = self.env.reset(seed=seed, options=options)[1]
            return
        self._atari.seed_game(seed)
        self._ale.restoreState(self._loaded)
        self._ale.reset_game()

    def _act(self, action: Any) -> tuple[float, bool, bool]:
        """One step of ``env``, without its picture if the emulator is stepped; reward and ends."""
        if self._repeats is None:
            _, reward, terminated, truncated, self._given = self.env.step(action)
            return float(reward), terminated, truncated
        chosen, total, ale = self._atari._action_set[action], 0.0, self._ale
        for _ in self._repeats:
            total += ale.act(chosen, 1.0)
        return total, ale.game_over(with_truncation=False), ale.game_truncated()

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = self._given if self._repeats is None else self._atari._get_info()
        return info

    def _seen(self) -> NDArray[np.uint8]:
        return self._frames.reshape(self._shape).copy()


class Memory:
    """The 128 bytes of a game's memory."""

    shape = (128,)

    def __init__(self, ale: Any) -> None:
        self._ale = ale

    def look(self) -> None:
        """Memory is read when it is asked for."""

    begin = look_before = look

    def image(self) -> NDArray[np.uint8]:
        return np.asarray(self._ale.getRAM())


class Screen:
    """A game's screen, pooled, cropped and resized; channels first.

    Args:
        ale: the emulator.
        raw: the shape of its pictures: (H, W) of grey ones, (H, W, 3) of others.
        part: the rows and columns that are kept.
        size: the height and width that they are resized to, if they are.
        pools: an image is the maximum of the last two frames.
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
            cv2 = self._cv2
            part = cv2.resize(np.ascontiguousarray(part), self._size[::-1], interpolation=cv2.INTER_AREA)
        return part[None] if part.ndim == 2 else np.moveaxis(part, -1, 0)
