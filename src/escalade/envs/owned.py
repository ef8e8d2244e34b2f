"""Arrays between an environment and the wrappers around it, of which each side has its own."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium


class Owned(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Copies every observation and every action.

    An environment may give one array again and again, and write to an action. Wrappers that stack
    observations, or repeat an action, keep both beyond a step.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        observation, info = self.env.reset(seed=seed, options=options)
        return copy.deepcopy(observation), info

    def step(self, action: Any) -> Any:
        observation, *rest = self.env.step(copy.deepcopy(action))
        return copy.deepcopy(observation), *rest
