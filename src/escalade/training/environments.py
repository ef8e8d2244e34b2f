"""The environment of a config, and the limits of its episodes."""

from __future__ import annotations

from dataclasses import replace

from escalade.config.options import OPTIONS, Config
from escalade.envs import Environment, resolve, settle_backend
from escalade.envs.backends import BACKENDS
from escalade.envs.batched import BACKEND
from escalade.envs.environment import DEFAULT_LIMIT
from escalade.envs.pixels.frames import FRAMES, Frames
from escalade.errors import InputError

_SINGLE_ONLY = (
    *("wrappers", "fresh_environments", "early_end", "info_keys", "behavior", "novelty", "reward"),
    *FRAMES,
)
"""Options that batched worlds do not have."""


def find_environment(config: Config) -> Environment:
    """Return the config's environment.

    Raises:
        InputError: The environment is unknown, needs a missing package, or has unsupported spaces.
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
        behavior_keys=() if config.behavior is None else config.behavior.keys,
        device=config.device,
        num_envs=config.num_envs,
        generation=generation_rows(config),
    )
    for name in _SINGLE_ONLY if environment.batched else ():
        if getattr(config, name) != OPTIONS[name].default:
            raise InputError(f"`{name}` has no effect with {config.env}, a batched world; remove it")
    return environment


def check_states(config: Config, environment: Environment) -> None:
    """Check that episodes can start in states of the center's episode, if the cutoff needs it.

    Raises:
        InputError: The environment's states cannot be saved, or an option is incompatible.
    """
    if config.cutoff is None or not config.cutoff.along:
        return
    backend = BACKENDS[settle_backend(environment).backend]
    if not backend.keeps or config.early_end is not None or config.novelty is not None:
        raise InputError(
            f"`cutoff` {config.cutoff} starts episodes in states of another episode, which only works with "
            "the backends `ale` and `mujoco`, without `wrappers`, `early_end` and `novelty`; "
            "set `cutoff` to a number of steps or `none`"
        )


def with_workers(config: Config, environment: Environment) -> Config:
    """Return the config, without workers for a batched world unless they are set explicitly."""
    alone = environment.batched and config.workers is None
    return config.replace(workers=0) if alone else config


def generation_rows(config: Config) -> int:
    """Return the default ``num_envs`` of a batched world: a generation's episodes and evaluations."""
    episodes = config.members(0) * config.episodes_per_member + 2 * config.eval_episodes
    return min(BACKENDS[BACKEND].most_rows, episodes)


def limited(environment: Environment) -> Environment:
    """Return the environment with a step limit: its own, or the default."""
    limit = environment.max_episode_steps or DEFAULT_LIMIT
    return replace(environment, max_episode_steps=limit)
