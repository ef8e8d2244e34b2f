"""Processing of frames and actions between an environment and a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces, wrappers
from gymnasium.envs.registration import EnvSpec

from escalade.envs.pixels.game import Game, Memory, Screen
from escalade.envs.pixels.wrappers import (
    STICKINESS,
    FrameSkip,
    Owned,
    as_image,
    channels_first,
    channels_last,
    grayscale,
    is_atari,
    moved_first,
)
from escalade.envs.spaces import is_image
from escalade.errors import InputError

Env = gymnasium.Env[Any, Any]


_STICKY = "repeat_action_probability"
_OF_IMAGES = ("max_pool", "grayscale", "crop", "resize")


@dataclass(frozen=True)
class Frames:
    """Options of images and frames.

    The defaults do not change an environment. The order is: sticky actions, no-op starts, skipped frames,
    grayscale, crop, resize, stack.
    """

    grayscale: bool = False
    crop: tuple[int, ...] = ()
    """Part of an image to use: rows TOP to BOTTOM, optionally also columns LEFT to RIGHT."""
    resize: tuple[int, ...] = ()
    """Height and width, or one number for both. Pixels are area averages (OpenCV's INTER_AREA)."""
    frame_skip: int | None = None
    """Number of steps for which an action is repeated. None leaves it to the environment."""
    max_pool: bool = False
    """True if an observation is the maximum of the last two skipped frames (Mnih et al. 2015)."""
    frame_stack: int = 1
    noop_max: int = 0
    """An episode of an Atari game starts with 1 to this many no-ops."""
    sticky_actions: float | None = None
    """Probability that a game repeats the last action (Machado et al. 2018). None leaves it to the game."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Frames:
        """Return the processing that the options of a run select."""
        skip = options["frame_skip"]
        pooled = {} if skip is None else {"frame_skip": skip.steps, "max_pool": skip.pools}
        return cls(**{name: options[name] for name in FRAMES} | pooled)

    @property
    def off(self) -> bool:
        """True if nothing is changed."""
        return self == Frames()

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width of resized images, or None."""
        return (self.resize[0], self.resize[-1]) if self.resize else None

    def part(self, height: int, width: int) -> tuple[slice, slice]:
        """Return the rows and columns of an image that ``crop`` selects.

        Raises:
            InputError: the image is smaller.
        """
        top, bottom, left, right = (*(self.crop or (0, height)), 0, width)[:4]
        if bottom > height or right > width:
            shown = ",".join(map(str, self.crop))
            raise InputError(f"`crop` {shown} exceeds the image of {height} x {width}: use smaller numbers")
        return slice(top, bottom), slice(left, right)

    @property
    def pooled_skip(self) -> int:
        """Number of steps per pooled observation."""
        return (self.frame_skip or 1) if self.max_pool else 1

    def outer_skip(self, spec: EnvSpec) -> int:
        """Return the number of environment steps per policy step. Atari's emulator skips frames by itself."""
        return self.pooled_skip if is_atari(spec) else self.frame_skip or 1

    def kwargs(self, spec: EnvSpec) -> dict[str, Any]:
        """Return arguments of a game for the processing that the emulator does itself."""
        if not is_atari(spec):
            return {}
        arguments: dict[str, Any] = {}
        if self.frame_skip is not None:
            arguments["frameskip"] = 1 if self.max_pool else self.frame_skip
        if self.sticky_actions is not None:
            arguments[_STICKY] = self.sticky_actions
        return arguments

    def stickiness(self, spec: EnvSpec, kwargs: dict[str, Any]) -> str:
        """Return the probability of sticky actions for a run's header, or "" if there are none.

        Args:
            spec: spec of the environment.
            kwargs: arguments of the environment in the run.
        """
        own = spec.kwargs.get(_STICKY, STICKINESS)
        probability = (self.kwargs(spec) | kwargs).get(_STICKY, own)
        if not is_atari(spec) or own == probability == 0:
            return ""
        default = f" instead of the default {own:g}" if own != probability else ""
        return f"sticky actions {probability:g}{default}"

    def wrap(self, env: Env, spec: EnvSpec) -> Env:
        """Wrap the environment with the selected processing.

        Images get their channels first.

        Raises:
            InputError: an option does not apply to the environment.
        """
        if is_atari(spec) and isinstance(env.observation_space, spaces.Box):
            return self._wrap_game(env)
        env = channels_first(env) if self.off else self._wrap_plain(env, spec)
        if self.frame_stack == 1:
            return env
        one = env.observation_space
        env, shape = wrappers.FrameStackObservation(env, self.frame_stack), one.shape or ()
        # A stack of matrices becomes one matrix, because three dimensions would make it an image.
        if len(shape) == 3 or (len(shape) == 2 and not _whole_range(one)):
            return wrappers.ReshapeObservation(env, (self.frame_stack * shape[0], *shape[1:]))
        return env

    def _wrap_game(self, env: Env) -> Env:
        while isinstance(env, wrappers.OrderEnforcing):
            env = env.env
        if self.off and env is not env.unwrapped:  # a user's wrapper may have moved the channels
            return channels_first(as_image(env))
        _check_untouched(env)
        game: Any = env.unwrapped
        raw: tuple[int, ...] = game.observation_space.shape
        if len(raw) == 1:
            self._refuse(_OF_IMAGES, "needs images, but observations are the memory")
            view: Memory | Screen = Memory(game.ale)
        else:
            shown = raw[:2] if self.grayscale else raw
            view = Screen(game.ale, shown, self.part(*raw[:2]), self.size, pools=self.pooled_skip > 1)
        return Game(env, view, self.pooled_skip, self.frame_stack, self.noop_max, shows_end=self.off)

    def _wrap_plain(self, env: Env, spec: EnvSpec) -> Env:
        self._refuse(("noop_max", "sticky_actions"), f"is for Atari games, and {spec.id} is not one")
        if len(env.observation_space.shape or ()) < 2:
            self._refuse(_OF_IMAGES, f"needs images, and {spec.id} has no images")
        env = Owned(env)
        if self.frame_skip is not None and self.frame_skip > 1:
            env = FrameSkip(env, self.frame_skip, self.max_pool)
        if not (self.crop or self.grayscale or self.size):
            return channels_first(env)
        env = channels_last(env)
        if not _whole_range(env.observation_space):
            self._refuse(
                ("grayscale", "resize"),
                f"needs images of integers from 0 to 255, and {spec.id} has no such images",
            )
        if (env.observation_space.shape or ())[2:] != (3,):
            self._refuse(("grayscale",), f"needs images of three colors, and {spec.id} has no such images")
        env = self._cropped(env) if self.crop else env
        env = grayscale(env) if self.grayscale else env
        env = wrappers.ResizeObservation(env, self.size) if self.size else env
        return _first_or_only(env)

    def _cropped(self, env: Env) -> Env:
        """Crop the image."""
        space = env.observation_space
        assert space.shape is not None
        part = self.part(*space.shape[:2])

        def cropped(image: Any) -> Any:
            return np.ascontiguousarray(image[part])

        assert isinstance(space, spaces.Box)
        low, high = cropped(space.low), cropped(space.high)
        return wrappers.TransformObservation(env, cropped, spaces.Box(low, high, dtype=space.dtype.type))

    def _refuse(self, names: tuple[str, ...], why: str) -> None:
        for name in names:
            if getattr(self, name):
                option = "frame_skip" if name == "max_pool" else name
                raise InputError(f"`{option}` {why}: remove it")


FRAMES = tuple(option.name for option in fields(Frames) if option.name != "max_pool")
"""Names of the options."""


def _check_untouched(env: Env) -> None:
    """Check that wrappers do not change a game's images, which are read directly from the emulator.

    Raises:
        InputError: a wrapper changes observations.
    """
    while env is not env.unwrapped:
        inner: Env = env.env  # type: ignore[attr-defined]
        if env.observation_space != inner.observation_space or isinstance(env, gymnasium.ObservationWrapper):
            raise InputError(
                f"`wrappers`: {type(env).__name__} changes observations, but with options of frames, images "
                "of a game are read directly from the emulator: remove the wrapper or the options of frames"
            )
        env = inner


def _whole_range(space: spaces.Space[Any]) -> bool:
    return space.dtype == np.uint8 and space == spaces.Box(0, 255, space.shape or (), np.uint8)


def _first_or_only(env: Env) -> Env:
    """Move the channels of (H, W, C) images first, and add one to (H, W) images.

    The channels are known to be last. A cropped image may be as small as the number of its channels.
    """
    return moved_first(env) if is_image(env.observation_space) else as_image(env)
