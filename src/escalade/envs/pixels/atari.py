"""Wrappers and facts of Atari games, beside Gymnasium's preprocessing."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

_ENTRY_POINT = "ale_py.env:AtariEnv"
STICKINESS = 0.25
"""The chance with which the emulator repeats the last action, where nothing else is said."""
NOOP, FIRE = 0, 1
"""Their numbers in every action set; not all have FIRE."""


def is_atari(spec: EnvSpec) -> bool:
    """Tell whether the environment is a game of the Arcade Learning Environment."""
    return spec.entry_point == _ENTRY_POINT


def has_fire(game: Any) -> bool:
    """Tell whether the game's action set has FIRE."""
    return "FIRE" in game.get_action_meanings()[FIRE : FIRE + 1]


def frame_limit(spec: EnvSpec) -> int | None:
    """The steps after which the emulator itself truncates a game, which counts its frames."""
    frames, skip = (spec.kwargs.get(name) for name in ("max_num_frames_per_episode", "frameskip"))
    if not is_atari(spec) or frames is None or skip is None:
        return None
    least: int = skip if isinstance(skip, int) else min(skip)
    return math.ceil(int(frames) / least)


class NoopStart(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Starts an episode with 1 to ``most`` no-ops, as Gymnasium's AtariPreprocessing does for images."""

    def __init__(self, env: gymnasium.Env[Any, Any], most: int) -> None:
        super().__init__(env)
        self._most = most

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        for _ in range(int(self.env.unwrapped.np_random.integers(1, self._most + 1))):
            observation, _, terminated, truncated, info = self.env.step(NOOP)
            if terminated or truncated:
                observation, info = self.env.reset(seed=seed, options=options)
        return observation, info
