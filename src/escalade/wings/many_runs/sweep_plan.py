"""The file that defines a sweep: fixed options, search space, sampler and pruner."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

from escalade.config import presets
from escalade.config.commands import text_of
from escalade.config.conversion import Values, convert, from_values, parse_toml
from escalade.config.options import OPTIONS, Config
from escalade.config.strategy_text import layered, split_strategy, value_of
from escalade.config.types import absolute, as_type, describe
from escalade.errors import InputError, about, nearest
from escalade.support.imports import check_installed

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

BUDGETS = ("generations", "env_steps", "seconds")
"""Limits of a run. A trial needs at least one of them."""

_NOT_SEARCHED = ("env", "seed", "preset", "run_dir", "workers", "engine", *BUDGETS)
_RANGE = {"low": float, "high": float, "log": bool, "step": float}


@dataclass(frozen=True)
class SweepPlan:
    """Definition of a sweep."""

    trials: int
    """Number of trials, including pruned ones."""
    options: Values
    """Options that all trials share."""
    space: dict[str, Any]
    """Search space: Optuna distributions by option. Values from a list are represented by their text."""
    seeds: tuple[int, ...] = (0,)
    """Seeds of the runs of each trial. Its value is their mean return."""
    sampler: Literal["tpe", "random"] = "tpe"
    sampler_seed: int = 0
    preset: str = "auto"
    pruner: Literal["median", "halving", "none"] = "median"
    """Rule that stops poor trials early.

    ``median`` stops a trial that is worse than the median of earlier trials at the same part of the budget.
    ``halving`` is asynchronous successive halving. ``none`` stops no trial.
    """
    startup_trials: int = 5
    """For ``median``: number of first trials that are never stopped."""
    warmup: float = 0.2
    """For ``median``: part of the budget during which no trial is stopped."""

    def trial_options(self, params: Mapping[str, Any]) -> Values:
        """Return the explicit options of a trial with these parameters."""
        chosen, own = {}, {}
        for name, value in params.items():
            if name in OPTIONS:
                listed = value_of(value) if OPTIONS[name].metadata["repeats"] else value
                chosen[name] = convert(name, listed)
            else:
                own[name] = value_of(value) if isinstance(value, str) else value
        return layered(self.options, split_strategy(chosen), {"strategy_options": own})

    def config(self, params: Mapping[str, Any], inherited: Values | None = None) -> Config:
        """Return the config of a trial with these parameters.

        Args:
            params: values of the searched options.
            inherited: options of the policy that it starts from.

        Raises:
            InputError: the options exclude each other.
        """
        return presets.layer(self.trial_options(params), inherited or {}, self.preset)


def read_sweep(path: str | os.PathLike[str], trials: int | None = None) -> SweepPlan:
    """Read the file of a sweep.

    ``trials`` overrides the number in the file.

    Raises:
        InputError: the file cannot be read or has an error, or Optuna is missing.
    """
    check_installed("a sweep", "sweep", "optuna")  # the search space consists of its distributions
    content = parse_toml(path) | ({} if trials is None else {"trials": trials})
    with about(os.fspath(path)):
        return _plan({"trials": 0, "options": {}, "space": {}, "pruning": {}} | content)


def _plan(content: Values) -> SweepPlan:
    hints = get_type_hints(SweepPlan)
    read = _read(content, hints | {"pruning": Values}, "")
    read |= _read(read.pop("pruning"), hints, "[pruning] ")
    read |= {"options": from_values(read["options"], "[options]"), "space": _space(read["space"])}
    if "start_from" in read["options"]:  # before an environment changes the working directory
        read["options"]["start_from"] = absolute(read["options"]["start_from"])
    plan = SweepPlan(**read)
    own = [name for name in ("seed", "run_dir") if name in plan.options]
    both = [name for name in plan.space if name in plan.options]
    problems = {
        "trials must be a whole number of at least 1": plan.trials < 1,
        "[pruning] warmup must be a part of the budget, at least 0 and below 1": not 0 <= plan.warmup < 1,
        "seeds must be a list of different seeds": not 0 < len(plan.seeds) == len(set(plan.seeds)),
        "[options] must contain env": not plan.options.get("env"),
        "[space] is empty; add an option to search, such as sigma = {low = 0.1, high = 1}": not plan.space,
        f"[options] {', '.join(own)} is set by the sweep; remove it": own,
        f"{', '.join(both)} is in both [options] and [space]; remove one": both,
    }
    for problem, found in problems.items():
        if found:
            raise InputError(problem)
    # Do not build a config: without the searched options, the others may be inconsistent.
    options = layered(presets.options(plan.options["env"], plan.preset, plan.options), plan.options)
    if not any(options.get(name) for name in BUDGETS):
        raise InputError(f"a trial needs a budget; set one of {', '.join(BUDGETS)} in [options]")
    _check_some(plan)
    return plan


def _check_some(plan: SweepPlan) -> None:
    """Check that the options are valid in at least one of some trials.

    The trials have the first or the last values of the space, with each strategy.

    Raises:
        InputError: none of them is valid; this is the error of the first.
    """
    ends = [{name: _ends(of)[last] for name, of in plan.space.items()} for last in (0, -1)]
    strategy = plan.space.get("strategy")
    tries = (
        ends if strategy is None else [end | {"strategy": one} for one in strategy.choices for end in ends]
    )
    problems = []
    for params in tries:
        try:
            plan.config(params)
            return
        except InputError as problem:
            problems.append(problem)
    raise problems[0]


def _ends(distribution: Any) -> tuple[Any, Any]:
    if hasattr(distribution, "choices"):
        return distribution.choices[0], distribution.choices[-1]
    return distribution.low, distribution.high


def _space(table: Values) -> dict[str, BaseDistribution]:
    """Return the distributions of the options, including those in ``strategy_options``."""
    known = [option for option in OPTIONS if option not in _NOT_SEARCHED]
    found: dict[str, BaseDistribution] = {}
    for name, value in table.items():
        if name not in known:
            raise InputError(f"[space] {name} is not an option that can be searched{nearest(name, known)}")
        if name == "strategy_options" and isinstance(value, dict):
            found |= {own: _dimension(own, one, lambda read: read, _own_text) for own, one in value.items()}
        else:
            text = json.dumps if OPTIONS[name].metadata["repeats"] else text_of
            found[name] = _dimension(name, value, partial(convert, name), text)
    return found


def _own_text(value: Any) -> str:
    """Return the value of a strategy option as text that :func:`value_of` can read."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _dimension(
    name: str, value: Any, read: Callable[[Any], Any], text: Callable[[Any], str] = text_of
) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    where = f"[space] {name}"
    if isinstance(value, list):
        texts = [text(read(one)) for one in value]
        if len(set(texts)) < max(2, len(texts)):
            raise InputError(f"{where} must list at least two different values")
        return CategoricalDistribution(texts)
    if not isinstance(value, dict) or not {"low", "high"} <= value.keys():
        raise InputError(f"{where} must be a list of values, or a range such as {{low = 1, high = 9}}")
    log = _read(value, _RANGE, f"{where}: ").get("log", False)
    numbers = {name: read(value[name]) for name in ("low", "high", "step") if name in value}
    if any(type(number) not in (int, float) for number in numbers.values()):
        raise InputError(f"{where} is not a number, so it cannot have a range; list its values")
    whole = all(type(number) is int for number in numbers.values())
    try:
        if whole:
            return IntDistribution(**numbers, log=log)
        return FloatDistribution(**{name: float(number) for name, number in numbers.items()}, log=log)
    except ValueError as problem:
        raise InputError(f"{where}: {problem}") from None


def _read(table: Values, kinds: Mapping[str, Any], where: str) -> Values:
    for name, value in table.items():
        if name not in kinds:
            raise InputError(f"{where}unknown entry {name!r}{nearest(name, kinds)}")
        try:
            table = table | {name: as_type(kinds[name], value)}
        except (TypeError, ValueError, OverflowError):
            known = describe(kinds[name])
            raise InputError(f"{where}{name} {value!r} is not valid; use {known}") from None
    return table
