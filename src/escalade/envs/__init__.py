"""From an id to seeded vector environments."""

from __future__ import annotations

from dataclasses import replace

from escalade.envs.actions import ActionMap
from escalade.envs.environment import Environment, SlotError, VectorEnvironment, may_use_envpool, resolve
from escalade.errors import InputError

__all__ = [
    "ActionMap",
    "Environment",
    "SlotError",
    "VectorEnvironment",
    "resolve",
    "settle_backend",
    "vectorize",
]


# MuJoCo models take long to build, and each wave needs a fresh pool: where episodes are short, it does
# not pay. Measured in benchmarks/backends.md.
_SLOW_IN_ENVPOOL = ("Hopper-", "Walker2d-", "Humanoid-")


def settle_backend(environment: Environment) -> Environment:
    """Replace the backend ``auto`` by the faster one that can run this environment.

    EnvPool where it has the environment and is faster, Gymnasium elsewhere: benchmarks/backends.md
    has the measurements.

    Raises:
        InputError: the backend was asked for by name and has no such environment.
    """
    if environment.backend == "envpool":
        from escalade.envs.envpool_backend import matches

        if not (may_use_envpool(environment) and matches(environment)):
            raise InputError(
                f"EnvPool has no {environment.id} with these arguments and spaces: use `backend=gymnasium`"
            )
    if environment.backend != "auto":
        return environment
    if may_use_envpool(environment) and not environment.id.startswith(_SLOW_IN_ENVPOOL):
        from escalade.envs.envpool_backend import matches

        if matches(environment):
            return replace(environment, backend="envpool")
    return replace(environment, backend="gymnasium")


def vectorize(environment: Environment, slots: int) -> VectorEnvironment:
    """Slots for up to ``slots`` concurrent episodes on the environment's (settled) backend."""
    if environment.backend == "envpool":
        from escalade.envs.envpool_backend import EnvPoolVector

        return EnvPoolVector(environment, slots)
    from escalade.envs.gymnasium_backend import GymnasiumVector

    return GymnasiumVector(environment, slots)
