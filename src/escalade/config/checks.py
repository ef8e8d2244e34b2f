"""Checks of the options, each and together, before anything is started."""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from escalade.config.declared import check_declared, readers_of
from escalade.envs import BOUNDINGS, wrapping
from escalade.errors import InputError
from escalade.perturbation import registry as perturbation
from escalade.rollout import behaviour, cutoff
from escalade.strategies import novelty, schedules
from escalade.strategies.registry import STRATEGIES
from escalade.support.registry import check_named

if TYPE_CHECKING:
    from escalade.config.options import Config


def check(config: Config) -> None:
    """Check a config.

    Raises:
        InputError: a value is impossible; the message names it and what to do about it.
    """
    if not config.env:
        raise InputError("no environment given: name a Gymnasium id, such as CartPole-v1")
    check_declared(type(config).__dataclass_fields__, vars(config))
    for name in config.action_map.split(","):
        check_named("action_map", name, BOUNDINGS)
    for text in config.wrappers:
        wrapping.parse(text)
    schedules.parse_sigma(config.sigma, "`sigma`")
    if config.lr is not None:
        schedules.parse(config.lr, "`lr`")
    cutoff.parse(config.cutoff)
    if config.behaviour is not None:
        behaviour.parse(config.behaviour)
    if config.novelty is not None:
        novelty.parse(config.novelty)
    _check_resources(config)
    if isinstance(config.early_end, tuple):
        _lengths(config, "early_end", (1, 2))
    _check_frames(config)
    _check_info_keys(config)
    _check_recorders(config)
    perturbation.rank_of(config.perturbation)
    _check_factory(config)
    _check_strategy(config)


def _check_frames(config: Config) -> None:
    if config.max_pool and config.frame_skip == 1:
        raise InputError("`max_pool` needs a `frame_skip` of at least 2")
    _lengths(config, "resize", (0, 1, 2))
    _lengths(config, "crop", (0, 2, 4))
    if any(start < 0 for start in config.crop):
        raise InputError(f"`crop` {_listed(config.crop)}: rows and columns are counted from 0")
    if any(first >= last for first, last in zip(config.crop[::2], config.crop[1::2], strict=True)):
        raise InputError(f"`crop` {_listed(config.crop)}: each end must be above its start")


def _check_recorders(config: Config) -> None:
    for text in config.recorder:
        if ":" not in text:
            from escalade.recorders.registry import RECORDERS

            check_named("recorder", text, RECORDERS, ", or package.module:Recorder")


def _check_info_keys(config: Config) -> None:
    if not config.info_keys:
        return
    from escalade.recorders import COLUMNS, info_columns

    taken = [*COLUMNS, *novelty.columns(config.novelty, config.centres)]
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


def _check_resources(config: Config) -> None:
    if "object_store_memory" in config.worker_resources:
        raise InputError("`worker_resources` object_store_memory is a node's, not a worker's: leave it out")
    for name, amount in config.worker_resources.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < math.inf:
            raise InputError(f"`worker_resources` {name} {amount!r} must be a number of at least 0")
    if not any({"CPU": 1, **config.worker_resources}.values()):
        raise InputError("`worker_resources` takes nothing of any machine: give a share, such as CPU 0.1")


def _check_factory(config: Config) -> None:
    if ":" not in config.policy:
        return
    options = config.__dataclass_fields__
    for name in readers_of(options["policy"]):
        if getattr(config, name) != options[name].default:
            raise InputError(
                f"`{name}` does nothing with `policy` {config.policy}, which is given inputs and outputs: "
                "leave it out"
            )


def _check_strategy(config: Config) -> None:
    if ":" in config.strategy:  # a class of the user's is looked at when it is made
        return
    entry = STRATEGIES[config.strategy]
    first = config.members(0)
    if entry.antithetic and first % 2:
        raise InputError(
            f"`population` {first} is odd, but {config.strategy} needs mirrored pairs: use {first + 1}"
        )
    if first < entry.smallest:
        raise InputError(
            f"`population` {config.population} is too small for {config.strategy}: "
            f"use at least {entry.smallest}"
        )
    if entry.adapts_sigma and ":" in str(config.sigma):
        raise InputError(
            f"`sigma` {config.sigma} is a schedule, but {config.strategy} adapts sigma itself: "
            "give its first value"
        )
    asked = config.growth
    if asked and not entry.grows:
        able = ", ".join(name for name, known in STRATEGIES.items() if known.grows)
        raise InputError(f"{asked} does not work with {config.strategy}: use {able}")
    if perturbation.rank_of(config.perturbation) and not entry.low_rank:
        able = ", ".join(name for name, known in STRATEGIES.items() if known.low_rank)
        raise InputError(
            f"`perturbation` {config.perturbation} does not work with {config.strategy}: use {able}"
        )


def absolute(path: Any) -> Any:
    """Return a path of the user's as an absolute one: a simulator may change the working directory later."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or os.fspath(path).startswith("zoo:"):
        return path
    return os.path.join(os.getcwd(), os.fspath(path))
