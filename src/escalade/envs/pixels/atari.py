"""Facts of Atari games."""

from __future__ import annotations

import math
from typing import Any

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
