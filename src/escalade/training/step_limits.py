"""Limits for environments whose episodes may never end."""

from __future__ import annotations

from dataclasses import replace

from escalade.config.options import Config
from escalade.envs import Environment
from escalade.envs.environment import DEFAULT_LIMIT
from escalade.rollout import cutoff
from escalade.strategies import Strategy
from escalade.training.parts import Parts


def limited(environment: Environment) -> Environment:
    """Return the environment with a limit of steps: its own, or the default."""
    limit = environment.max_episode_steps or DEFAULT_LIMIT
    return replace(environment, max_episode_steps=limit)


def limit_episodes(config: Config, parts: Parts, strategy: Strategy) -> Config:
    """Limit the episodes of an environment without a limit of steps, in ``parts`` and in the returned config.

    A policy that repeats an action without effect may otherwise never finish an episode. The config records
    both options, so that resumed runs and evaluations have the same limits.
    """
    if parts.environment.max_episode_steps is not None:
        return config
    parts.unlimited = True
    cap = config.cutoff
    if cap is None:
        cap = cutoff.START if strategy.compares_generations else cutoff.MOVING
    limit = max(DEFAULT_LIMIT, cutoff.parse(cap).start or 0)
    parts.environment = replace(parts.environment, max_episode_steps=limit)
    return config.replace(max_episode_steps=limit, cutoff=cap)
