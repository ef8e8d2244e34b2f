"""The environment of a config, and the limits of its episodes."""

from __future__ import annotations

from dataclasses import replace

from escalade.config.options import Config
from escalade.envs import Environment, resolve
from escalade.envs.environment import DEFAULT_LIMIT
from escalade.envs.pixels.frames import Frames


def find_environment(config: Config) -> Environment:
    """The config's environment.

    Raises:
        InputError: it is unknown, misses a package, or has spaces that cannot be used.
    """
    environment = resolve(
        config.env,
        config.env_kwargs,
        config.backend,
        config.max_episode_steps,
        config.fresh_environments,
        config.wrappers,
        None if config.reward is None else config.reward.info,
        frames=Frames.of(vars(config)),
        early_end=config.early_end,
        info_keys=config.info_keys,
        behaviour_keys=() if config.behaviour is None else config.behaviour.keys,
    )
    return replace(environment, envs_per_worker=config.envs_per_worker)


def limited(environment: Environment) -> Environment:
    """Return the environment with a limit of steps: its own, or the default."""
    limit = environment.max_episode_steps or DEFAULT_LIMIT
    return replace(environment, max_episode_steps=limit)
