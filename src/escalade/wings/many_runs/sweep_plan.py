"""The file of a sweep: what is fixed, what is searched, and how."""

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
"""Limits that a trial may be given; one of them ends it."""

_NOT_SEARCHED = ("env", "seed", "preset", "run_dir", "workers", "engine", *BUDGETS)
_RANGE = {"low": float, "high": float, "log": bool, "step": float}


@dataclass(frozen=True)
class SweepPlan:
    """A sweep, as its file describes it."""

    trials: int
    """The number of trials, ended early or not."""
    options: Values
    """Options that all trials share."""
    space: dict[str, Any]
    """The space of the search: Optuna's distribution by option; a listed value goes by its text."""
    seeds: tuple[int, ...] = (0,)
    """A trial's value is the mean over runs with these seeds."""
    sampler: Literal["tpe", "random"] = "tpe"
    sampler_seed: int = 0
    preset: str = "auto"
    pruner: Literal["median", "halving", "none"] = "median"
    """``median`` ends trials that are worse than the median of those before, at the same part of the
    budget; ``halving`` is asynchronous successive halving; ``none`` ends none."""
    startup_trials: int = 5
    """``median``: the first trials, which none of them ends."""
    warmup: float = 0.2
    """``median``: the part of its budget that every trial gets."""

    def given(self, params: Mapping[str, Any]) -> Values:
        """The options that are given to a trial with these parameters."""
        chosen, own = {}, {}
        for name, value in params.items():
            if name in OPTIONS:
                listed = value_of(value) if OPTIONS[name].metadata["repeats"] else value
                chosen[name] = convert(name, listed)
            else:
                own[name] = value_of(value) if isinstance(value, str) else value
        return layered(self.options, split_strategy(chosen), {"strategy_options": own})

    def config(self, params: Mapping[str, Any], inherited: Values | None = None) -> Config:
        """The config of a trial with these parameters; ``inherited`` are options of what it starts from.

        Raises:
            InputError: the options do not go together.
        """
        return presets.layer(self.given(params), inherited or {}, self.preset)


def read_sweep(path: str | os.PathLike[str], trials: int | None = None) -> SweepPlan:
    """Read a sweep's file; ``trials`` wins over what it says.

    Raises:
        InputError: it cannot be read, something in it is wrong, or Optuna is missing.
    """
    check_installed("a sweep", "sweep", "optuna")  # whose distributions make the space
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
        "[pruning] warmup must be a part of the budget, from 0 to below 1": not 0 <= plan.warmup < 1,
        "seeds must be a list of seeds, each once": not 0 < len(plan.seeds) == len(set(plan.seeds)),
        "[options] must name an env": not plan.options.get("env"),
        "[space] is empty: name an option to search, such as sigma = {low = 0.1, high = 1}": not plan.space,
        f"[options] {', '.join(own)} is the sweep's to choose: leave it out": own,
        f"{', '.join(both)} stands in [options] and in [space]: choose one": both,
    }
    for problem, found in problems.items():
        if found:
            raise InputError(problem)
    # No config is made of them: without the searched options, the others need not go together.
    options = layered(presets.options(plan.options["env"], plan.preset, plan.options), plan.options)
    if not any(options.get(name) for name in BUDGETS):
        raise InputError(f"a trial needs a budget: give one of {', '.join(BUDGETS)} in [options]")
    _check_some(plan)
    return plan


def _check_some(plan: SweepPlan) -> None:
    """Refuse options that go with none of some trials: the first and last values, with each strategy.

    Raises:
        InputError: that of the first of them.
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
    """The distributions of options, and of a strategy's own in the table's ``strategy_options``."""
    known = [option for option in OPTIONS if option not in _NOT_SEARCHED]
    found: dict[str, BaseDistribution] = {}
    for name, value in table.items():
        if name not in known:
            raise InputError(f"[space] {name} is no option that can be searched{nearest(name, known)}")
        if name == "strategy_options" and isinstance(value, dict):
            found |= {own: _dimension(own, one, lambda read: read, _own_text) for own, one in value.items()}
        else:
            text = json.dumps if OPTIONS[name].metadata["repeats"] else text_of
            found[name] = _dimension(name, value, partial(convert, name), text)
    return found


def _own_text(value: Any) -> str:
    """A value of a strategy's own as the text that :func:`value_of` reads."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _dimension(
    name: str, value: Any, read: Callable[[Any], Any], text: Callable[[Any], str] = text_of
) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    where = f"[space] {name}"
    if isinstance(value, list):
        texts = [text(read(one)) for one in value]
        if len(set(texts)) < max(2, len(texts)):
            raise InputError(f"{where} must list two values at least, each once")
        return CategoricalDistribution(texts)
    if not isinstance(value, dict) or not {"low", "high"} <= value.keys():
        raise InputError(f"{where} must be a list of values, or a range such as {{low = 1, high = 9}}")
    log = _read(value, _RANGE, f"{where}: ").get("log", False)
    numbers = {name: read(value[name]) for name in ("low", "high", "step") if name in value}
    if any(type(number) not in (int, float) for number in numbers.values()):
        raise InputError(f"{where} is not a number: list its values")
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
            raise InputError(f"{where}{name} {value!r} is not valid: it takes {known}") from None
    return table
