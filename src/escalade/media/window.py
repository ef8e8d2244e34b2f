"""An episode in a window, where there is a display."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from escalade.envs import Environment
from escalade.envs.closing import close
from escalade.errors import InputError
from escalade.media.playing import Acts, Played, drawing, make_drawing, play
from escalade.support.installing import missing
from escalade.support.shared import without_warnings

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def show_episode(
    environment: Environment, policy: Acts, *, seed: int = 0, max_steps: int | None = None
) -> tuple[float, int]:
    """Show one episode from ``seed`` in a window, in Gymnasium's render mode ``human``.

    The environment opens the window, and keeps to its own speed. The policy goes on from the state it has.

    Returns:
        The episode's return, and its length in steps.

    Raises:
        InputError: there is no display, or the environment has no window.
        EnvironmentFailure: drawing or stepping failed.
    """
    named = sys.platform != "linux" or any(os.environ.get(name) for name in _DISPLAYS)
    if not named or not _glfw_starts(environment):
        raise _no_display()
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    played = Played()
    env = make_drawing(environment, "human", "window to show: film the episode with `output=x.mp4`")
    try:
        with drawing(environment, "shown"):
            for _ in play(env, policy, seed, max_steps, played):
                if played.steps == 0 and _unseen():
                    raise _no_display()
    finally:
        close(env)
    return played.total, played.steps


def _no_display() -> InputError:
    return InputError("`live` needs a display, and there is none here: film the episode with `output=x.mp4`")


def _glfw_starts(environment: Environment) -> bool:
    """Tell whether GLFW, which draws MuJoCo's environments, finds the display: else it ends the process."""
    follows = str(environment.spec.entry_point).startswith("gymnasium.envs.mujoco")
    if not follows or missing("glfw"):
        return True
    glfw: Any = importlib.import_module("glfw")
    with without_warnings():
        return bool(glfw.init())


def _unseen() -> bool:
    """Tell whether pygame, which draws many environments, found no display and draws into memory."""
    display: Any = getattr(sys.modules.get("pygame"), "display", None)
    return display is not None and display.get_init() and display.get_driver() in ("dummy", "offscreen")
