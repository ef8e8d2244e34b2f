"""An episode in a window, where there is a display."""

from __future__ import annotations

import os
import sys

from gymnasium import error

from escalade.envs import Environment
from escalade.errors import EnvironmentFailure, InputError
from escalade.media.playing import Acts, Played, make_drawing, needs_package, play

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
    if sys.platform == "linux" and not any(os.environ.get(name) for name in _DISPLAYS):
        raise InputError(
            "`live` needs a display, and there is none here: film the episode with `output=x.mp4`"
        )
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    played = Played()
    env = make_drawing(environment, "human", "window to show: film the episode with `output=x.mp4`")
    try:
        for _ in play(env, policy, seed, max_steps, played):
            pass
    except error.DependencyNotInstalled as problem:
        raise needs_package(environment, problem) from problem
    except Exception as problem:
        raise EnvironmentFailure(
            f"environment {environment.id} failed while it was shown: {type(problem).__name__}: {problem}"
        ) from problem
    finally:
        env.close()
    return played.total, played.steps
