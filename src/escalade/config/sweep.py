"""The file of a sweep: what is fixed, what is searched, and how."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from escalade.config import presets
from escalade.config.conversion import Values, convert, from_values, parse_toml
from escalade.config.options import OPTIONS, Config
from escalade.errors import InputError, nearest

SAMPLERS = ("tpe", "random")
PRUNERS = ("median", "halving", "none")
BUDGETS = ("generations", "env_steps", "seconds")
"""Limits that a trial may be given; one of them ends it."""

_NOT_SEARCHED = ("env", "seed", "run_dir", "workers", "engine", "address")
_RANGE_KEYS = ("low", "high", "log", "step")


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included."""

    low: float
    high: float
    log: bool = False
    """Whether their logarithm is what is spread evenly."""
    step: float | None = None
    """Only every ``step``-th of them; None for all."""

    @property
    def whole(self) -> bool:
        """Whether they are whole numbers."""
        return isinstance(self.low, int)


@dataclass(frozen=True)
class Choices:
    """Values of which one is taken, by the text that stands for each."""

    values: dict[str, Any]


@dataclass(frozen=True)
class Pruning:
    """How trials that do badly are ended early."""

    pruner: str = "median"
    """``median`` ends trials that are worse than the median of those before, at the same part of the
    budget; ``halving`` is asynchronous successive halving; ``none`` ends none."""
    startup_trials: int = 5
    """``median``: the first trials, which none of them ends."""
    warmup: float = 0.2
    """``median``: the part of its budget that every trial gets."""


@dataclass(frozen=True)
class SweepPlan:
    """A sweep, as its file describes it."""

    trials: int
    """How many there are to be, ended early or not."""
    options: Values
    """What all trials share."""
    space: dict[str, Range | Choices]
    """What is searched, by option."""
    seeds: tuple[int, ...] = (0,)
    """A trial's value is the mean over runs with these seeds."""
    sampler: str = "tpe"
    sampler_seed: int = 0
    preset: str = "auto"
    pruning: Pruning = Pruning()

    def config(self, chosen: Mapping[str, Any]) -> Config:
        """The config of a trial, given its choice of ``space``.

        Raises:
            InputError: the options do not go together.
        """
        given = self.options | dict(chosen)
        return Config(**(presets.options(given["env"], self.preset, given) | given))


def read_sweep(path: str | os.PathLike[str], trials: int | None = None) -> SweepPlan:
    """Read a sweep's file.

    Args:
        path: of the file.
        trials: wins over what the file says.

    Raises:
        InputError: it cannot be read, or something in it is wrong.
    """
    content = parse_toml(path)
    try:
        return _plan(content if trials is None else content | {"trials": trials})
    except InputError as problem:
        raise InputError(f"{os.fspath(path)}: {problem}") from None


def _plan(content: Values) -> SweepPlan:
    _check_keys(content, [one.name for one in fields(SweepPlan)], "")
    options = from_values(_table(content, "options"), "[options]")
    space = {name: _dimension(name, value) for name, value in _table(content, "space").items()}
    plan = SweepPlan(
        trials=_whole(content, "trials", None, 1),
        options=options,
        space=space,
        seeds=_seeds(content.get("seeds", [0])),
        sampler=_one_of(content, "sampler", SAMPLERS, "tpe"),
        sampler_seed=_whole(content, "sampler_seed", 0, 0),
        preset=str(content.get("preset", "auto")),
        pruning=_pruning(_table(content, "pruning")),
    )
    if not options.get("env"):
        raise InputError("[options] must name an env")
    if not space:
        raise InputError(
            "[space] is empty: name an option to search, such as sigma = {low = 0.01, high = 0.5}"
        )
    for name in ("seed", "run_dir"):
        if name in options:
            raise InputError(f"[options] {name} is the sweep's to choose: leave it out")
    if both := [name for name in space if name in options]:
        raise InputError(f"{both[0]} stands in [options] and in [space]: choose one")
    config = Config(**(presets.options(options["env"], plan.preset, options) | options))
    if not any(getattr(config, name) for name in BUDGETS):
        raise InputError(f"a trial needs a budget: give one of {', '.join(BUDGETS)} in [options]")
    return plan


def _dimension(name: str, value: Any) -> Range | Choices:
    if name not in OPTIONS or name in _NOT_SEARCHED or name in BUDGETS:
        known = [option for option in OPTIONS if option not in (*_NOT_SEARCHED, *BUDGETS)]
        raise InputError(f"[space] {name} is no option that can be searched{nearest(name, known)}")
    if isinstance(value, list):
        return _choices(name, value)
    if not isinstance(value, dict) or not {"low", "high"} <= value.keys():
        raise InputError(f"[space] {name} must be a list of values, or a range such as {{low = 1, high = 9}}")
    _check_keys(value, _RANGE_KEYS, f"[space] {name}: ")
    low, high = (convert(name, value[end], text=False) for end in ("low", "high"))
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high)):
        raise InputError(f"[space] {name} is not a number: list its values")
    log, step = value.get("log", False), value.get("step")
    if not isinstance(log, bool) or not (step is None or (isinstance(step, int | float) and step > 0)):
        raise InputError(f"[space] {name}: log is true or false, and step a number above 0")
    if low >= high or (log and low <= 0):
        raise InputError(f"[space] {name}: low must be below high" + (", and above 0 for log" if log else ""))
    if log and step is not None:
        raise InputError(f"[space] {name}: a range has log or step, not both")
    return Range(low, high, log, step)


def _choices(name: str, listed: list[Any]) -> Choices:
    if len(listed) < 2:
        raise InputError(f"[space] {name} must list two values at least")
    values = {_text(value): convert(name, value, text=False) for value in listed}
    if len(values) < len(listed):
        raise InputError(f"[space] {name} lists a value twice")
    return Choices(values)


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _pruning(table: Values) -> Pruning:
    _check_keys(table, [one.name for one in fields(Pruning)], "[pruning] ")
    warmup = table.get("warmup", 0.2)
    if not isinstance(warmup, int | float) or not 0 <= warmup < 1:
        raise InputError("[pruning] warmup must be a part of the budget, from 0 to below 1")
    pruner = _one_of(table, "pruner", PRUNERS, "median")
    return Pruning(pruner, _whole(table, "startup_trials", 5, 0), float(warmup))


def _seeds(value: Any) -> tuple[int, ...]:
    listed = value if isinstance(value, list) else [value]
    if not listed or len(set(map(str, listed))) < len(listed):
        raise InputError("seeds must be a list of seeds, each once")
    return tuple(convert("seed", seed, text=False) for seed in listed)


def _table(content: Values, name: str) -> Values:
    table = content.get(name, {})
    if not isinstance(table, dict):
        raise InputError(f"[{name}] must be a table")
    return table


def _one_of(content: Values, name: str, choices: tuple[str, ...], default: str) -> str:
    value = content.get(name, default)
    if value not in choices:
        raise InputError(f"{name} {value!r} must be one of {', '.join(choices)}")
    return str(value)


def _whole(content: Values, name: str, default: int | None, least: int) -> int:
    value = content.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}")
    return value


def _check_keys(table: Mapping[str, Any], known: list[str] | tuple[str, ...], where: str) -> None:
    if unknown := [name for name in table if name not in known]:
        raise InputError(f"{where}unknown entry {unknown[0]!r}{nearest(unknown[0], known)}")
