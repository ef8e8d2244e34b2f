"""Atari games, which are quick to make, and begin every episode in the same state (:mod:`.game`)."""

from __future__ import annotations

from escalade.envs.environment import Environment
from escalade.envs.gymnasium_backend import GymnasiumVector
from escalade.envs.pixels.wrappers import is_atari


def supports(environment: Environment) -> bool:
    """Return whether it is an Atari game."""
    return is_atari(environment.spec)


def make_vector(environment: Environment, slots: int) -> GymnasiumVector:
    """Slots for up to ``slots`` concurrent episodes."""
    vector = GymnasiumVector(environment, slots)
    vector.room = slots
    return vector
