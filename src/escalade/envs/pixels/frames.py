"""Treatment of frames and actions between an environment and a policy, made of Gymnasium's wrappers."""

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
    """The options of images and frames; with the defaults, an environment is left as it is.

    In this order: sticky actions, no-op starts, skipped frames, greyscale, crop, resize, stack.
    """

    grayscale: bool = False
    crop: tuple[int, ...] = ()
    """Rows TOP to BOTTOM, or also columns LEFT to RIGHT: what is kept of an image."""
    resize: tuple[int, ...] = ()
    """Height and width, or one number for both; by the mean of the area (OpenCV's INTER_AREA)."""
    frame_skip: int | None = None
    """Steps for which an action is repeated; None is as the environment has it."""
    max_pool: bool = False
    """True where an observation is the maximum of the last two skipped frames (Mnih et al. 2015)."""
    frame_stack: int = 1
    noop_max: int = 0
    """An episode of an Atari game starts with 1 to this many no-ops."""
    sticky_actions: float | None = None
    """Probability that a game's last action is repeated (Machado et al. 2018); None is as it is there."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Frames:
        """The treatment that the options of a run ask for."""
        skip = options["frame_skip"]
        pooled = {} if skip is None else {"frame_skip": skip.steps, "max_pool": skip.pools}
        return cls(**{name: options[name] for name in FRAMES} | pooled)

    @property
    def off(self) -> bool:
        """True where everything is left as the environment has it."""
        return self == Frames()

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width that images are resized to."""
        return (self.resize[0], self.resize[-1]) if self.resize else None

    def part(self, height: int, width: int) -> tuple[slice, slice]:
        """The rows and columns of an image that ``crop`` keeps.

        Raises:
            InputError: it has not so many.
        """
        top, bottom, left, right = (*(self.crop or (0, height)), 0, width)[:4]
        if bottom > height or right > width:
            shown = ",".join(map(str, self.crop))
            raise InputError(f"`crop` {shown} reaches out of the image of {height} x {width}")
        return slice(top, bottom), slice(left, right)

    @property
    def pooled_skip(self) -> int:
        """Steps that one observation is pooled from."""
        return (self.frame_skip or 1) if self.max_pool else 1

    def outer_skip(self, spec: EnvSpec) -> int:
        """Steps of the environment inside that are one here; Atari's emulator skips by itself."""
        return self.pooled_skip if is_atari(spec) else self.frame_skip or 1

    def kwargs(self, spec: EnvSpec) -> dict[str, Any]:
        """Arguments that make the environment leave to the wrappers what they do, and do the rest itself."""
        if not is_atari(spec):
            return {}
        given: dict[str, Any] = {}
        if self.frame_skip is not None:
            given["frameskip"] = 1 if self.max_pool else self.frame_skip
        if self.sticky_actions is not None:
            given[_STICKY] = self.sticky_actions
        return given

    def stickiness(self, spec: EnvSpec, kwargs: dict[str, Any]) -> str:
        """The chance that the last action is repeated, for a run's header; empty where there is none.

        Args:
            spec: the environment's.
            kwargs: its arguments in the run.
        """
        own = spec.kwargs.get(_STICKY, STICKINESS)
        chance = (self.kwargs(spec) | kwargs).get(_STICKY, own)
        if not is_atari(spec) or own == chance == 0:
            return ""
        return f"sticky actions {chance:g}" + (f" instead of its {own:g}" if own != chance else "")

    def wrap(self, env: Env, spec: EnvSpec) -> Env:
        """The environment with everything that is asked for; images have their channels first.

        Raises:
            InputError: the environment lacks what an option is about.
        """
        if is_atari(spec) and isinstance(env.observation_space, spaces.Box):
            return self._wrap_game(env)
        env = channels_first(env) if self.off else self._wrap_plain(env, spec)
        if self.frame_stack == 1:
            return env
        one = env.observation_space
        env, shape = wrappers.FrameStackObservation(env, self.frame_stack), one.shape or ()
        # A stack of matrices stays one: three dimensions would make it an image.
        if len(shape) == 3 or (len(shape) == 2 and not _whole_range(one)):
            return wrappers.ReshapeObservation(env, (self.frame_stack * shape[0], *shape[1:]))
        return env

    def _wrap_game(self, env: Env) -> Env:
        while isinstance(env, wrappers.OrderEnforcing):
            env = env.env
        if self.off and env is not env.unwrapped:  # what it gives has its channels where the user put them
            return channels_first(as_image(env))
        _check_untouched(env)
        game: Any = env.unwrapped
        raw: tuple[int, ...] = game.observation_space.shape
        if len(raw) == 1:
            self._refuse(_OF_IMAGES, "needs images, and memory is none")
            view: Memory | Screen = Memory(game.ale)
        else:
            shown = raw[:2] if self.grayscale else raw
            view = Screen(game.ale, shown, self.part(*raw[:2]), self.size, pools=self.pooled_skip > 1)
        return Game(env, view, self.pooled_skip, self.frame_stack, self.noop_max, shows_end=self.off)

    def _wrap_plain(self, env: Env, spec: EnvSpec) -> Env:
        self._refuse(("noop_max", "sticky_actions"), f"is for ALE's games, and {spec.id} is none of them")
        if len(env.observation_space.shape or ()) < 2:
            self._refuse(_OF_IMAGES, f"needs images, and {spec.id} gives none")
        env = Owned(env)
        if self.frame_skip is not None and self.frame_skip > 1:
            env = FrameSkip(env, self.frame_skip, self.max_pool)
        if not (self.crop or self.grayscale or self.size):
            return channels_first(env)
        env = channels_last(env)
        if not _whole_range(env.observation_space):
            self._refuse(
                ("grayscale", "resize"),
                f"needs images of whole numbers from 0 to 255, and {spec.id} has none",
            )
        if (env.observation_space.shape or ())[2:] != (3,):
            self._refuse(("grayscale",), f"needs images of three colours, and {spec.id} has none")
        env = self._cropped(env) if self.crop else env
        env = wrappers.GrayscaleObservation(env) if self.grayscale else env
        env = wrappers.ResizeObservation(env, self.size) if self.size else env
        return _first_or_only(env)

    def _cropped(self, env: Env) -> Env:
        """The part of the image that is kept."""
        space = env.observation_space
        assert space.shape is not None
        part = self.part(*space.shape[:2])

        def kept(image: Any) -> Any:
            return np.ascontiguousarray(image[part])

        assert isinstance(space, spaces.Box)
        low, high = kept(space.low), kept(space.high)
        return wrappers.TransformObservation(env, kept, spaces.Box(low, high, dtype=space.dtype.type))

    def _refuse(self, names: tuple[str, ...], why: str) -> None:
        for name in names:
            if getattr(self, name):
                option = "frame_skip" if name == "max_pool" else name
                raise InputError(f"`{option}` {why}: leave it out")


FRAMES = tuple(option.name for option in fields(Frames) if option.name != "max_pool")
"""The names of the options."""


def _check_untouched(env: Env) -> None:
    """Refuse wrappers that change what a game shows: its frames are read from the emulator, behind them.

    Raises:
        InputError: names the wrapper.
    """
    while env is not env.unwrapped:
        inner: Env = env.env  # type: ignore[attr-defined]
        if env.observation_space != inner.observation_space or isinstance(env, gymnasium.ObservationWrapper):
            raise InputError(
                f"`wrappers`: {type(env).__name__} changes observations, and frames of a game are read from "
                "the emulator, without it: leave out the options of frames, or let it do all of that itself"
            )
        env = inner


def _whole_range(space: spaces.Space[Any]) -> bool:
    return space.dtype == np.uint8 and space == spaces.Box(0, 255, space.shape or (), np.uint8)


def _first_or_only(env: Env) -> Env:
    """Images of (H, W, C) with their channels first, and those of (H, W) with one channel.

    The channels are last. Sizes would not tell: a cropped image may be no larger than its channels.
    """
    return moved_first(env) if is_image(env.observation_space) else as_image(env)
