"""One dataclass: the flags, the TOML file, and what a checkpoint records."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import tomllib
import types
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from escalade import cutoff
from escalade.errors import InputError, nearest
from escalade.shaping import SHAPINGS
from escalade.strategies import schedules
from escalade.strategies.names import STRATEGIES, STRATEGY_OPTIONS

Values = dict[str, Any]


def _option(default: Any, text: str) -> Any:
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata={"help": text})
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Config:
    """Everything that decides what a run does. Each field is a flag of ``escalade train``.

    Raises:
        InputError: a value is impossible; the message names it.
    """

    env: str = _option("", "Gymnasium id, or package.module:Id-v0")
    env_kwargs: dict[str, Any] = _option({}, "arguments of the environment, as JSON")
    backend: Literal["auto", "gymnasium", "envpool"] = _option("auto", "who steps the environment")
    max_episode_steps: int | None = _option(None, "cut episodes after this many steps")
    cutoff: int | str | None = _option(None, f"cap on the population's episodes: {cutoff.FORMS}")
    seed: int = _option(0, "the same seed gives the same bits")

    strategy: str = _option("openai-es", f"how the centre moves: {', '.join(STRATEGIES)}")
    population: int = _option(64, "members a generation")
    min_episodes: int | None = _option(
        None, "a generation grows by populations until it holds these episodes"
    )
    min_env_steps: int | None = _option(None, "likewise, until it holds these steps")
    max_population: int | None = _option(None, "a generation grows no further than this")
    sigma: float | str = _option(0.05, f"noise scale: a number or a schedule ({schedules.FORMS})")
    lr: float | str | None = _option(
        None, "step size: a number or a schedule; the strategy's own when not given"
    )
    optimizer: Literal["adam", "sgd", "clipup"] | None = _option(
        None, "for openai-es (adam when not given) and pgpe (clipup)"
    )
    momentum: float = _option(0.9, "of sgd and clipup")
    weight_decay: float = _option(0.0, "pull towards zero, added to the gradient")
    shaping: str | None = _option(
        None, f"fitness to utilities: {', '.join(SHAPINGS)}; the strategy's own when not given"
    )
    top_directions: int | None = _option(None, "ars: directions kept of population/2; all when not given")

    policy: str = _option("mlp", "linear, mlp, or package.module:factory of an nn.Module")
    hidden: tuple[int, ...] = _option((64, 64), "sizes of the mlp's hidden layers")
    activation: Literal["tanh", "relu", "elu", "selu"] = _option("tanh", "between the mlp's layers")
    init: Literal["normc", "xavier", "orthogonal", "zeros"] = _option("normc", "how weights begin")
    bias: bool = _option(True, "whether layers have a bias")
    head: str = _option("plain", "for Box actions: plain, uniform:N bins, or custom:A,B,... bins")
    action_map: Literal["clip", "rescale", "tanh"] = _option("clip", "how Box actions meet their bounds")
    action_noise: float = _option(
        0.0, "for Box actions: deviation of noise on the policy's outputs, before the action map"
    )
    normalize_observations: bool = _option(True, "by running mean and deviation")

    episodes_per_member: int = _option(1, "episodes whose mean return is a member's fitness")
    eval_episodes: int = _option(8, "episodes of the unperturbed policy in an evaluation")
    eval_every: int = _option(5, "generations between evaluations")
    generations: int | None = _option(None, "stop after this many")
    env_steps: int | None = _option(None, "stop after this many training steps")
    seconds: float | None = _option(None, "stop after this many seconds of training")
    target_return: float | None = _option(None, "stop once 100 fresh episodes confirm this mean return")

    workers: int | None = _option(None, "worker processes; 0 runs all in this one; one a core when not given")
    engine: Literal["local"] = _option("local", "who runs the rollouts")
    snapshot_every: int = _option(50, "generations between checkpoints that are kept for good; 0 for none")
    run_dir: str | None = _option(None, "the run's folder; a new one under runs/ when not given")

    def __post_init__(self) -> None:
        _check(self)

    @property
    def worker_count(self) -> int:
        """How many worker processes ``workers`` means on this machine."""
        return self.workers if self.workers is not None else _cores()

    def replace(self, **changes: Any) -> Config:
        """A copy with some values changed, checked again."""
        return dataclasses.replace(self, **changes)

    def to_toml(self) -> str:
        """The TOML text that :func:`read_toml` reads back; options that are None are left out."""
        values = dict(vars(self))
        if _holds_null(self.env_kwargs):  # which TOML has not: the JSON text says it
            values["env_kwargs"] = json.dumps(self.env_kwargs)
        lines = [f"{name} = {_toml(value)}" for name, value in values.items() if value is not None]
        return "\n".join(lines) + "\n"


OPTIONS: dict[str, dataclasses.Field[Any]] = {option.name: option for option in fields(Config)}


def flag(name: str) -> str:
    """``target_return`` as ``--target-return``."""
    return "--" + name.replace("_", "-")


def convert(name: str, value: Any, *, text: bool) -> Any:
    """Turn a flag's text, or a TOML or Python value, into what the option ``name`` holds.

    Raises:
        InputError: it cannot be; the message names the option and what it takes.
    """
    annotation = _HINTS[name]
    try:
        return _convert(annotation, value, text)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{flag(name)} {value!r} is not valid: it takes {_describe(annotation)}") from None


def from_values(values: Mapping[str, Any], where: str = "") -> Values:
    """Check option names and types of TOML or Python values.

    Raises:
        InputError: an unknown option, named with its nearest, or a value of another type.
    """
    place = f"{where}: " if where else ""
    unknown = [name for name in values if name not in OPTIONS]
    if unknown:
        raise InputError(f"{place}unknown option {unknown[0]!r}{nearest(unknown[0], OPTIONS)}")
    try:
        return {name: convert(name, value, text=False) for name, value in values.items()}
    except InputError as problem:
        raise InputError(f"{place}{problem}") from None


def read_toml(path: Path, section: str | None = None) -> Values:
    """Options of a TOML file, or of one of its tables.

    Raises:
        InputError: it cannot be read, is not TOML, or holds an unknown or mistyped option.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InputError(f"config file {path} cannot be read: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"config file {path} is not TOML: {problem}") from None
    return from_values(content if section is None else content.get(section, {}), str(path))


def _check(config: Config) -> None:
    if not config.env:
        raise InputError("no environment given: name a Gymnasium id, such as CartPole-v1")
    _named("strategy", config.strategy, STRATEGIES)
    if config.shaping is not None:
        _named("shaping", config.shaping, SHAPINGS)
    _at_least(config, 1, "max_episode_steps", "episodes_per_member", "eval_episodes", "eval_every")
    _at_least(config, 1, "generations", "env_steps", "top_directions", "min_episodes", "min_env_steps")
    _at_least(config, 0, "seed", "workers", "snapshot_every", "weight_decay", "action_noise", "momentum")
    _at_least(config, 2, "population")
    if config.seed >= 2**63:
        raise InputError(f"--seed {config.seed} must be below 2**63")
    if config.momentum >= 1:
        raise InputError(f"--momentum {config.momentum} must be below 1")
    if config.seconds is not None and not 0 < config.seconds < math.inf:
        raise InputError(f"--seconds {config.seconds} must be above 0")
    if config.target_return is not None and not math.isfinite(config.target_return):
        raise InputError(f"--target-return {config.target_return} must be a finite number")
    if any(size < 1 for size in config.hidden):
        raise InputError(f"--hidden {','.join(map(str, config.hidden))}: sizes must be at least 1")
    if config.policy not in ("linear", "mlp") and ":" not in config.policy:
        raise InputError(f"--policy {config.policy!r} must be linear, mlp or package.module:factory")
    schedules.parse_sigma(config.sigma, "--sigma")
    if config.lr is not None:
        schedules.parse(config.lr, "--lr")
    _check_strategy(config)
    cutoff.parse(config.cutoff)


def _check_strategy(config: Config) -> None:
    named = STRATEGIES[config.strategy]
    for name in STRATEGY_OPTIONS:
        if name not in named.options and getattr(config, name) != OPTIONS[name].default:
            takers = ", ".join(other for other, known in STRATEGIES.items() if name in known.options)
            raise InputError(f"{flag(name)} does nothing with {config.strategy}: leave it out (for {takers})")
    if config.momentum != OPTIONS["momentum"].default and config.optimizer not in ("sgd", "clipup"):
        raise InputError(f"--momentum {config.momentum} needs --optimizer sgd or clipup")
    if named.pairs and config.population % 2:
        raise InputError(
            f"--population {config.population} is odd, but {config.strategy} needs mirrored pairs: "
            f"use {config.population + 1}"
        )
    if config.population < named.smallest:
        raise InputError(
            f"--population {config.population} is too small for {config.strategy}: "
            f"use at least {named.smallest}"
        )
    if named.adapts_sigma and ":" in str(config.sigma):
        raise InputError(
            f"--sigma {config.sigma} is a schedule, but {config.strategy} adapts sigma itself: "
            "give its first value"
        )
    growing = config.min_episodes is not None or config.min_env_steps is not None
    if growing and not named.grows:
        able = ", ".join(name for name, known in STRATEGIES.items() if known.grows)
        raise InputError(f"--min-episodes and --min-env-steps do not work with {config.strategy}: use {able}")
    if config.max_population is not None and not growing:
        raise InputError("--max-population does nothing without --min-episodes or --min-env-steps")
    if config.max_population is not None and config.max_population < config.population:
        raise InputError(
            f"--max-population {config.max_population} is below the --population of {config.population}"
        )
    if config.top_directions is not None and config.top_directions > config.population // 2:
        raise InputError(
            f"--top-directions {config.top_directions} is more than the {config.population // 2} directions "
            f"of a population of {config.population}"
        )


def _named(name: str, value: str, known: Mapping[str, Any]) -> None:
    if value not in known:
        hint = nearest(value, known) or f": it must be one of {', '.join(known)}"
        raise InputError(f"unknown {flag(name)} {value!r}{hint}")


def _at_least(config: Config, least: int, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if value is not None and not least <= value < math.inf:
            raise InputError(f"{flag(name)} {value} must be at least {least}")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _convert(annotation: Any, value: Any, text: bool) -> Any:
    origin, choices = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _convert_union(choices, value, text)
    if origin is Literal:
        if value not in choices:
            raise ValueError
        return value
    if origin is tuple:
        parts = ([part for part in value.split(",") if part] if isinstance(value, str) else value) or ()
        return tuple(_convert(int, part, text) for part in parts)
    if origin is dict:
        value = json.loads(value) if isinstance(value, str) else value
        if not isinstance(value, dict):
            raise TypeError
        json.dumps(value)  # a run records it: anything but plain values raises here
        return dict(value)
    return _convert_scalar(annotation, value, text)


def _convert_union(choices: tuple[Any, ...], value: Any, text: bool) -> Any:
    if type(None) in choices and (value is None or (text and value.lower() == "none")):
        return None
    for choice in choices:
        if choice is not type(None):
            try:
                return _convert(choice, value, text)
            except (TypeError, ValueError, OverflowError):
                continue
    raise ValueError


_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _convert_scalar(kind: type, value: Any, text: bool) -> Any:
    if kind is bool:
        if text:
            if value.lower() not in _BOOLEANS:
                raise ValueError
            return _BOOLEANS[value.lower()]
        if not isinstance(value, bool):
            raise TypeError
        return value
    if isinstance(value, bool):
        raise TypeError
    if kind is str:
        if not isinstance(value, str):
            raise TypeError
        return value
    if kind is int:
        number = float(value) if text or isinstance(value, float) else value
        if text and value.lstrip("+-").isdigit():
            return int(value)  # exact, however long; 1e6 is welcome too
        if number != int(number):
            raise ValueError
        return int(number)
    if not text and not isinstance(value, int | float):
        raise TypeError
    number = float(value)
    if math.isnan(number):
        raise ValueError
    return number


def _describe(annotation: Any) -> str:
    origin, choices = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(choice) for choice in choices if choice is not type(None))
    if origin is Literal:
        return "one of " + ", ".join(choices)
    if origin is tuple:
        return "whole numbers with commas between, such as 64,64"
    if origin is dict:
        return 'a JSON object, such as {"gravity": -5.0}'
    return {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[annotation]


def _holds_null(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return value is None or any(_holds_null(item) for item in inner)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # A JSON string is a TOML basic string, but for DEL and the escapes of what lies beyond 16 bits.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items()) + "}"
    return repr(value)


_HINTS = get_type_hints(Config)
