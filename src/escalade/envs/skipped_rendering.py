"""Steps whose picture nobody sees. CarRacing draws one in every step, most of what a step costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import gymnasium
from gymnasium import wrappers

from escalade.envs.owned import Owned

Env = gymnasium.Env[Any, Any]

_BLIND = (wrappers.TimeLimit, wrappers.OrderEnforcing, Owned)


class SkippedRendering:
    """Lets the pictures of an environment be left out where that changes nothing else, and nobody watches.

    That is Gymnasium's CarRacing, whose drawing reads the world and leaves it as it is. Where another
    wrapper stands between, which may look at the pictures, all are drawn.
    """

    def __init__(self, env: Env) -> None:
        inner = env
        while isinstance(inner, _BLIND):
            inner = inner.env
        module, name = type(inner).__module__, type(inner).__name__
        drawn = (module, name) == ("gymnasium.envs.box2d.car_racing", "CarRacing")
        watched = inner.render_mode == "human"  # a window shows every frame, at its own speed
        self._env: Any = inner if drawn and not watched else None

    def skipped(self) -> AbstractContextManager[None]:
        """While it lasts, steps give the picture before them."""
        return nullcontext() if self._env is None else self._without_drawing()

    def draw(self, observation: Any) -> Any:
        """The picture of the world as it stands, where it was left out; ``observation`` elsewhere."""
        if self._env is None:
            return observation
        return type(self._env)._render(self._env, "state_pixels")

    @contextmanager
    def _without_drawing(self) -> Iterator[None]:
        self._env._render = lambda mode: self._env.state
        try:
            yield
        finally:
            del self._env._render  # the class's own stands behind it
