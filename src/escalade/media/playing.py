"""Plays an episode of a policy step by step, also in a window."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gymnasium import error

from escalade.envs import Environment
from escalade.envs.masks import MASK, maskable
from escalade.envs.process import close
from escalade.envs.providers import lacking
from escalade.envs.wrapping import one_bool, one_number
from escalade.errors import EnvironmentFailure, InputError, StorageFailure, one_line, text_of

if TYPE_CHECKING:
    from escalade.policies.policy import Policy


class Played:
    """Return and length of an episode so far."""

    total = 0.0
    steps = 0


def play(env: Any, policy: Policy, seed: int, most: int | None, played: Played) -> Iterator[None]:
    """Play an episode from ``seed`` in a Gymnasium environment, and yield after the reset and each step.

    Args:
        env: the environment.
        policy: the policy, which continues from its current state.
        seed: seed of the episode.
        most: maximum number of steps, or None for a complete episode.
        played: updated with the return and the number of steps.
    """
    observation, info = env.reset(seed=seed)
    yield
    ended, masked = False, maskable(env.action_space)
    while not ended and (most is None or played.steps < most):
        action = policy.act(observation, action_mask=info.get(MASK) if masked else None)
        observation, reward, terminated, truncated, info = env.step(action)
        played.total += one_number(reward)
        played.steps += 1
        ended = one_bool(terminated, "terminated") or one_bool(truncated, "truncated")
        yield


@contextmanager
def drawable(environment: Environment, mode: str, lacks: str) -> Iterator[Any]:
    """Make the environment with the render mode ``mode``, and close it after the block.

    Raises:
        InputError: the environment does not have the mode (reported as ``lacks``), or a package is missing.
        EnvironmentFailure: making, rendering or stepping it raised anything else.
    """
    env = None
    try:
        env = environment.make(render_mode=mode)
        if mode not in env.metadata.get("render_modes", ()):
            raise InputError(f"environment {environment.id} has no {lacks}")
        yield env
    except (InputError, StorageFailure):
        raise
    except error.DependencyNotInstalled as problem:
        text = f"rendering environment {environment.id} {lacking(environment.spec, problem)}"
        raise InputError(text) from problem
    except (Exception, SystemExit) as problem:
        if env is None and "render_mode" in text_of(problem):
            raise InputError(f"environment {environment.id} has no {lacks}") from problem
        text = f"environment {environment.id} failed while rendering: {one_line(problem)}"
        raise EnvironmentFailure(text) from problem
    finally:
        if env is not None:
            close(env)


def show_episode(
    environment: Environment, policy: Policy, *, seed: int = 0, max_steps: int | None = None
) -> tuple[float, int]:
    """Show one episode from ``seed`` in a window, with Gymnasium's render mode ``human``.

    The environment opens the window and sets the speed. The policy continues from its current state.

    Returns:
        Return and length of the episode.

    Raises:
        InputError: the machine has no display, or the environment has no window.
        EnvironmentFailure: rendering or stepping failed.
    """
    if sys.platform == "linux" and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        raise InputError("`live` needs a display: use `output=x.mp4` to write a video instead")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    played = Played()
    with drawable(environment, "human", "window to show: use `output=x.mp4` to write a video instead") as env:
        for _ in play(env, policy, seed, max_steps, played):
            pass
    return played.total, played.steps
