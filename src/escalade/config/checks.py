"""What the options must be, each and together, before anything is started."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from escalade.engines.registry import ENGINES
from escalade.envs import wrapping
from escalade.envs.backends import CHOICES as BACKEND_CHOICES
from escalade.envs.boundings import BOUNDINGS
from escalade.errors import InputError
from escalade.policies.architectures.registry import ARCHITECTURES
from escalade.rollout import cutoff
from escalade.strategies import schedules
from escalade.strategies.registry import GROWTH_OPTIONS, STRATEGIES, STRATEGY_OPTIONS
from escalade.strategies.shaping import SHAPINGS
from escalade.support.registry import check_named, named

if TYPE_CHECKING:
    from escalade.config.options import Config


ON_ERROR = ("stop", "worst")
"""What an environment that raises may do to the run."""

_WIDEST = 10**8  # units of a layer
_MOST = {
    "population": 10**7,
    "episodes_per_member": 10**6,
    "eval_episodes": 10**6,
    "frame_stack": 1000,
    "max_episode_steps": 2**31 - 1,
    "frame_skip": 2**31 - 1,
    "workers": 10**4,
}
"""Numbers beyond which there is no memory, or which simulators cannot hold."""


def check(config: Config) -> None:
    """Check a config.

    Raises:
        InputError: a value is impossible; the message names it and what to do about it.
    """
    if not config.env:
        raise InputError("no environment given: name a Gymnasium id, such as CartPole-v1")
    check_named("backend", config.backend, BACKEND_CHOICES)
    check_named("engine", config.engine, ENGINES)
    check_named("on_error", config.on_error, ON_ERROR)
    if config.shaping is not None:
        check_named("shaping", config.shaping, SHAPINGS)
    _at_least(config, 1, "max_episode_steps", "episodes_per_member", "eval_episodes", "eval_every")
    _at_least(config, 1, "generations", "env_steps", "top_directions", "min_episodes", "min_env_steps")
    _at_least(
        config,
        0,
        "seed",
        "workers",
        "snapshot_every",
        "weight_decay",
        "action_noise",
        "momentum",
        "weight_penalty",
    )
    _at_least(config, 2, "population")
    _check_sizes(config)
    if config.seed >= 2**63:
        raise InputError(f"`seed` {config.seed} must be below 2**63")
    if config.momentum >= 1:
        raise InputError(f"`momentum` {config.momentum} must be below 1")
    for name in ("seconds", "step_timeout"):
        value = getattr(config, name)
        if value is not None and not 0 < value < math.inf:
            raise InputError(f"`{name}` {value} must be above 0")
    if config.target_return is not None and not math.isfinite(config.target_return):
        raise InputError(f"`target_return` {config.target_return} must be a finite number")
    if isinstance(config.observation_clip, float) and not 0 < config.observation_clip < math.inf:
        raise InputError(f"`observation_clip` {config.observation_clip} must be above 0, or none")
    _check_policy(config)
    _check_start(config)
    for name in config.action_map.split(","):
        check_named("action_map", name, BOUNDINGS)
    _check_cluster(config)
    _check_frames(config)
    _check_reward(config)
    _check_info_keys(config)
    _check_recorders(config)
    for text in config.wrappers:
        wrapping.parse(text)
    schedules.parse_sigma(config.sigma, "`sigma`")
    if config.lr is not None:
        schedules.parse(config.lr, "`lr`")
    _check_strategy(config)
    cutoff.parse(config.cutoff)


def _check_sizes(config: Config) -> None:
    for name, most in _MOST.items():
        if (getattr(config, name) or 0) > most:
            raise InputError(f"`{name}` {getattr(config, name)} must be at most {most}")
    if any(not 1 <= size <= _WIDEST for size in config.hidden):
        raise InputError(f"`hidden` {_listed(config.hidden)}: sizes must be at least 1, at most {_WIDEST}")


def _check_frames(config: Config) -> None:
    _at_least(config, 1, "frame_skip", "frame_stack", "early_end")
    _at_least(config, 0, "noop_max", "burn_in", "early_end_from")
    if config.sticky_actions is not None and not 0 <= config.sticky_actions < 1:
        raise InputError(f"`sticky_actions` {config.sticky_actions} must be at least 0 and below 1")
    if config.max_pool and (config.frame_skip or 1) < 2:
        raise InputError("`max_pool` needs a `frame_skip` of at least 2")
    _lengths(config, "resize", (0, 1, 2))
    _lengths(config, "crop", (0, 2, 4))
    if any(size < 1 for size in config.resize):
        raise InputError(f"`resize` {_listed(config.resize)}: sizes must be at least 1")
    if any(not 0 <= first < last for first, last in zip(config.crop[::2], config.crop[1::2], strict=True)):
        raise InputError(f"`crop` {_listed(config.crop)}: each end must be above its start")
    for name, needed in (("burn_in_action", "burn_in"), ("early_end_from", "early_end")):
        if getattr(config, name) and not getattr(config, needed):
            raise InputError(f"`{name}` does nothing without `{needed}`")


def _check_recorders(config: Config) -> None:
    if config.track:
        from escalade.recorders.tracking import TRACKERS

        for tracker in config.track:
            check_named("track", tracker, TRACKERS)
    for text in config.recorder:
        if ":" not in text:
            raise InputError(f"`recorder` {text} must be written as package.module:Recorder")


def _check_info_keys(config: Config) -> None:
    if not config.info_keys:
        return
    from escalade.recorders import COLUMNS, info_columns

    taken = list(COLUMNS)
    for key in config.info_keys:
        if not key or not key.isprintable() or any(letter in key for letter in '",'):
            raise InputError(f"`info_keys` {key!r} cannot be a column: leave it out")
        if not set(taken).isdisjoint(info_columns([key])):
            raise InputError(f"`info_keys` {key}: there is a column of that name already: leave it out")
        taken += info_columns([key])


def _lengths(config: Config, name: str, lengths: tuple[int, ...]) -> None:
    values = getattr(config, name)
    if len(values) not in lengths:
        allowed = " or ".join(str(length) for length in lengths if length)
        raise InputError(f"`{name}` {_listed(values)} must be {allowed} whole numbers")


def _listed(values: Collection[int]) -> str:
    return ",".join(map(str, values))


def _check_policy(config: Config) -> None:
    if ":" in config.policy:
        return
    entry = named("policy", config.policy, ARCHITECTURES, ", or package.module:factory")
    for name in ("hidden", "activation", "bias"):
        if name not in entry.options and getattr(config, name) != _default(config, name):
            raise InputError(f"`{name}` does nothing with `policy` {config.policy}: leave it out")


def _check_start(config: Config) -> None:
    digest = config.start_sha256
    if digest is None:
        return
    if config.start_from is None:
        raise InputError("`start_sha256` does nothing without `start_from`")
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise InputError(f"`start_sha256` {digest[:80]} must be 64 hexadecimal digits")


def _check_cluster(config: Config) -> None:
    for name in ("address", "worker_resources"):
        if config.engine != "ray" and getattr(config, name):
            raise InputError(f"`{name}` does nothing with engine {config.engine}: use `engine` ray")
    for name, amount in config.worker_resources.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < math.inf:
            raise InputError(f"`worker_resources` {name} {amount!r} must be a number of at least 0")


def _check_reward(config: Config) -> None:
    for name in ("reward_shift", "reward_floor", "reward_ceiling", "reward_scale"):
        value = getattr(config, name)
        if value is not None and not math.isfinite(value):
            raise InputError(f"`{name}` {value} must be a finite number")
    if config.reward_scale == 0:
        raise InputError("`reward_scale` 0 leaves nothing to learn from: use another number")
    if config.reward_sign and config.reward_scale != _default(config, "reward_scale"):
        raise InputError(
            f"`reward_scale` {config.reward_scale} does nothing with `reward_sign`: leave it out"
        )
    floor, ceiling = config.reward_floor, config.reward_ceiling
    if floor is not None and ceiling is not None and floor >= ceiling:
        raise InputError(f"`reward_floor` {floor} must be below the `reward_ceiling` of {ceiling}")


def _check_strategy(config: Config) -> None:
    if ":" in config.strategy:  # a class of the user's is looked at when it is made
        return
    entry = named("strategy", config.strategy, STRATEGIES, ", or package.module:Class")
    for name in STRATEGY_OPTIONS:
        if name not in entry.options and getattr(config, name) != _default(config, name):
            takers = ", ".join(other for other, known in STRATEGIES.items() if name in known.options)
            raise InputError(f"`{name}` does nothing with {config.strategy}: leave it out (for {takers})")
    if config.momentum != _default(config, "momentum") and config.optimizer not in ("sgd", "clipup"):
        raise InputError(f"`momentum` {config.momentum} needs `optimizer` sgd or clipup")
    if entry.antithetic and config.population % 2:
        raise InputError(
            f"`population` {config.population} is odd, but {config.strategy} needs mirrored pairs: "
            f"use {config.population + 1}"
        )
    if config.population < entry.smallest:
        raise InputError(
            f"`population` {config.population} is too small for {config.strategy}: "
            f"use at least {entry.smallest}"
        )
    if entry.adapts_sigma and ":" in str(config.sigma):
        raise InputError(
            f"`sigma` {config.sigma} is a schedule, but {config.strategy} adapts sigma itself: "
            "give its first value"
        )
    asked = [name for name in GROWTH_OPTIONS if getattr(config, name) is not None]
    if asked and not entry.grows:
        able = ", ".join(name for name, known in STRATEGIES.items() if known.grows)
        raise InputError(f"`{asked[0]}` does not work with {config.strategy}: use {able}")
    if config.top_directions is not None and config.top_directions > config.population // 2:
        raise InputError(
            f"`top_directions` {config.top_directions} is more than the {config.population // 2} directions "
            f"of a population of {config.population}"
        )


def _at_least(config: Config, least: int, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if value is not None and not least <= value < math.inf:
            raise InputError(f"`{name}` {value} must be at least {least}")


def _default(config: Config, name: str) -> Any:
    return type(config).__dataclass_fields__[name].default
