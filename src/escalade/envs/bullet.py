"""PyBullet's environments: quiet where they begin, and with the parts of their reward in ``info``."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from escalade.envs.quiet import quiet

_PACKAGE = "pybullet_envs_gymnasium."
_WALKERS = ("alive", "progress", "electricity_cost", "joints_at_limit_cost", "feet_collision_cost")


def is_bullet(spec: EnvSpec) -> bool:
    """Tell whether the environment is one of pybullet-envs-gymnasium."""
    return str(spec.entry_point).startswith(_PACKAGE)


class Bullet(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps what PyBullet prints at the first reset from the console, which C code does for each object.

    A walker's ``info`` holds the parts that its reward is the sum of, among them the ``progress``: what it
    came nearer to its far goal in a step, divided by the step's time.
    """

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        with quiet():
            return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        parts = getattr(self.env.unwrapped, "rewards", ())
        if len(parts) == len(_WALKERS):
            info = info | {name: float(part) for name, part in zip(_WALKERS, parts, strict=True)}
        return observation, reward, terminated, truncated, info
