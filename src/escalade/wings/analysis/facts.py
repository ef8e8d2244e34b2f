"""Facts about a run, read from its folder."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any

import numpy as np

from escalade.config.files import read_either
from escalade.config.options import OPTIONS, Config
from escalade.media.curves import Curves, read_curves
from escalade.storage.run_folder import RunFolder
from escalade.strategies.registry import GROWTH_OPTIONS, STRATEGIES, STRATEGY_OPTIONS
from escalade.support.numbers import plain
from escalade.training.described import shown

_SAME = ("seed", "generations", "env_steps", "seconds", "target_return", "backend", "info_keys")
_EVALUATION = ("eval_episodes", "eval_every")
"""Options, besides those of the execution, in which runs of one configuration may differ."""
_WHERE = [name for name, option in OPTIONS.items() if option.metadata["group"] == "run"]
_NOT_COMPARED = {*_SAME, *_EVALUATION, *_WHERE, "run"}


@dataclass(frozen=True)
class RunFacts:
    """Facts about a run, read from its folder."""

    folder: RunFolder
    task: str
    """Environment of a run of ``train``, or class name of the module of a run of ``evolve``."""
    target: float | None
    config: Config | None
    """None for a run of ``evolve``."""
    options: dict[str, Any]
    """All options of a run of ``train``; the contents of config.toml for ``evolve``."""

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Contents of summary.json, empty if the run has not ended."""
        return self.folder.read_summary()

    @cached_property
    def curves(self) -> Curves:
        """Tables of the run, empty before its first generation."""
        cut = self.options.get("cutoff") is not None
        return read_curves(self.folder.path, target=self.target, cut=cut)

    def latest(self, name: str) -> float | None:
        """Return a number of the run's summary, or the latest one in progress.csv.

        Returns:
            The number, or None if there is no value yet or the final value is not a number.
        """
        value = self.summary.get(name, "")
        if value is None:  # NaN is stored as null
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        column = self.curves.progress["generation" if name == "generations" else name]
        known = column[np.isfinite(column)]
        return float(known[-1]) if len(known) else None

    @property
    def solved(self) -> bool:
        """True if the run reached its target."""
        return self.summary.get("solved") is True

    @property
    def diverged(self) -> bool:
        """True if the mean return of the last evaluation is not a number."""
        return bool(self.summary.get("eval_episodes")) and self.latest("eval_return_mean") is None

    def shown_options(self) -> dict[str, Any]:
        """Return the options that a comparison shows if they differ: all but the seed and the execution."""
        hidden = {*_WHERE, "seed", "run"}
        return {name: value for name, value in self.flat.items() if name not in hidden}

    def compared(self) -> dict[str, Any]:
        """Return the options that are equal in all runs of one configuration."""
        return {name: value for name, value in self.flat.items() if name not in _NOT_COMPARED}

    @cached_property
    def flat(self) -> dict[str, Any]:
        """Options with those of the strategy merged in, and the size of a user-defined module."""
        own = {
            name if name not in OPTIONS else f"strategy:{name}": value
            for name, value in (self.options.get("strategy_options") or {}).items()
        }
        found = {name: value for name, value in self.options.items() if name != "strategy_options"} | own
        size = None if self.config is None else self.own_size
        return found if size is None else found | {"parameters": size}

    @property
    def own_size(self) -> int | None:
        """Number of parameters of a user-defined network; None for others and before the run has ended."""
        return self.summary.get("parameters") if self.summary.get("network") == "own" else None


def read_facts(folder: RunFolder) -> RunFacts:
    """Read the facts about a run from its folder.

    Raises:
        InputError: its config.toml cannot be read.
    """
    found = read_either(folder)
    if not isinstance(found, Config):
        values = dict(found)
        values.pop("order_of_parameters", None)  # only resuming needs it
        values["parameters"] = sum(map(math.prod, values.get("parameters", {}).values()))
        return RunFacts(folder, values.get("module", "module"), None, None, values)
    return RunFacts(folder, found.env, found.target_return, found, dict(vars(found)))


def assignments(options: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return options as text for a label, such as ``sigma=0.1, hidden=64,64``.

    Paths are shortened. Options that the strategy does not have are left out, unless there are no others.
    """
    names = list(names)
    texts = {name: _rounded(name, options.get(name)) for name in applicable(options, names) or names}
    if options.get("start_from") is not None and "start_from" in texts:
        texts["start_from"] = PurePath(texts["start_from"]).name
    return ", ".join(f"{name}={value}" for name, value in texts.items())


def _rounded(name: str, value: Any) -> str:
    return plain(value) if isinstance(value, float) else shown(name, value)


def applicable(options: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Return those of ``names`` that apply to the run's strategy."""
    entry = STRATEGIES.get(str(options.get("strategy")))
    missing = {*STRATEGY_OPTIONS} - entry.options if entry else set()
    missing |= {*GROWTH_OPTIONS} if entry and not entry.grows else set()
    return [name for name in names if name not in missing and (name in options or name in OPTIONS)]
