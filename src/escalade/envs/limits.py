"""The number of steps after which an episode is cut: of the environment's own steps, and of a policy's.

They differ where frames are skipped, where no-ops come first, and where wrappers of frames stand between.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit

from escalade.envs.envpool.worlds import WorldSpec
from escalade.envs.pixels.atari import frame_limit

DEFAULT_LIMIT = 5000
"""Steps after which training ends the episodes of an environment without a limit, in evaluations too."""
_NEVER = 10**9  # steps


class StepLimits(NamedTuple):
    """The numbers of steps that cut an episode."""

    own: int | None
    """Limit in the environment's own steps; None: as it is registered."""
    policy: int | None
    """Limit in the policy's steps, counted outside of everything; None: no limit there."""


def registered_limit(env: gymnasium.Env[Any, Any], skip: int) -> int | None:
    """The limit that an environment has, in steps of a policy whose every step is ``skip`` of its own.

    A factory's environment is registered nowhere: its limit is that of a TimeLimit that is the outermost of
    what it is wrapped in. One further in need not end the episode.
    """
    if env.spec is None:
        return int(env._max_episode_steps) if isinstance(env, TimeLimit) else None
    steps = env.spec.max_episode_steps or frame_limit(env.spec)
    return None if steps is None else math.ceil(steps / skip)


def limits_of(spec: EnvSpec, asked: int | None, skip: int | None) -> StepLimits:
    """The limits with which an environment is made.

    Args:
        spec: its registration, or what stands for one.
        asked: the limit in steps of the policy; None for none.
        skip: how many of the environment's steps are one of the policy's; None where nothing stands between
            the two.
    """
    if skip is None:
        return StepLimits(asked, None)
    if asked is None:
        return StepLimits(None, None)
    registered = spec.max_episode_steps
    if registered is None:  # EnvPool's own has one that its registration does not tell
        return StepLimits(_NEVER if isinstance(spec, WorldSpec) else None, asked)
    return StepLimits(_NEVER if asked > math.ceil(registered / skip) else None, asked)
