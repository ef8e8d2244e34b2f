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

_OF_ONE = (
    *("wrappers", "fresh_environments", "early_end", "info_keys", "behaviour", "novelty", "reward"),
    *FRAMES,
)
"""Options of environments that step one by one."""


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
        device=config.device,
        num_envs=config.num_envs,
        generation=generation_rows(config),
    )
    for name in _OF_ONE if environment.batched else ():
        if getattr(config, name) != OPTIONS[name].default:
            raise InputError(f"`{name}` does nothing with {config.env}, a batched world: leave it out")
    return environment


def check_states(config: Config, environment: Environment) -> None:
    """Refuse episodes that begin along the centre's if the environment's states cannot be kept.

    Raises:
        InputError: they cannot, or an option does not go with it.
    """
    if config.cutoff is None or not config.cutoff.along:
        return
    backend = BACKENDS[settle_backend(environment).backend]
    if not backend.keeps or config.early_end is not None or config.novelty is not None:
        raise InputError(
            f"`cutoff` {config.cutoff} begins episodes in states of another, which the games of ALE keep, "
            "without `wrappers`, `early_end` and `novelty`: use a number of steps"
        )


def with_workers(config: Config, environment: Environment) -> Config:
    """The config; a batched world, which is a batch by itself, has no workers unless asked for."""
    alone = environment.batched and config.workers is None
    return config.replace(workers=0) if alone else config


def generation_rows(config: Config) -> int:
    """The episodes of a generation, evaluations included, as many as a batched world holds by default."""
    episodes = config.members(0) * config.episodes_per_member + 2 * config.eval_episodes
    return min(BACKENDS[BACKEND].most_rows, episodes)


def limited(environment: Environment) -> Environment:
    """Return the environment with a limit of steps: its own, or the default."""
    limit = environment.max_episode_steps or DEFAULT_LIMIT
    return replace(environment, max_episode_steps=limit)
