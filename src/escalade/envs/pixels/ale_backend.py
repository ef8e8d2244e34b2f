"""The backend for Atari games, which start every episode in the same state (see :mod:`.game`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.envs.environment import Environment
from escalade.envs.gymnasium_backend import GymnasiumVector
from escalade.envs.pixels.game import Game
from escalade.envs.pixels.wrappers import is_atari


def supports(environment: Environment) -> bool:
    """Return True if it is an Atari game."""
    return is_atari(environment.spec)


def make_vector(environment: Environment, slots: int) -> Games:
    """Make a vector for up to ``slots`` concurrent episodes."""
    games = Games(environment, slots)
    games.room = slots
    return games


class Games(GymnasiumVector):
    """Vector of games whose states, of emulator and stacked frames, can be saved and restored."""

    def keep(self, slot: int) -> tuple[Any, int]:
        game, limit = self._parts(slot)
        return game.keep(), 0 if limit is None else limit._elapsed_steps

    def go_on(self, slots: NDArray[np.int64], states: Sequence[tuple[Any, int]]) -> NDArray[Any]:
        seen = np.empty((len(slots), *self._shape), self._dtype)
        for row, (slot, (state, steps)) in enumerate(zip(slots.tolist(), states, strict=True)):
            if slot not in self._envs:
                self._renew(slot)
            game, limit = self._parts(slot)
            if limit is not None:
                limit._elapsed_steps = steps
            seen[row] = game.go_on(state)
        return seen

    def _parts(self, slot: int) -> tuple[Game, Any]:
        """Return the slot's game, and the TimeLimit around it or None."""
        env: Any = self._envs[slot]
        return (env, None) if isinstance(env, Game) else (env.env, env)
