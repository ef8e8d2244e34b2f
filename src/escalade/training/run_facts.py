"""Runs as their folders describe them, and folders that stand for the runs in them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, Final

import numpy as np

from escalade.config.files import read_either
from escalade.config.options import OPTIONS, Config
from escalade.media.curves import Curves, read_curves
from escalade.storage.run_folder import RunFolder
from escalade.strategies.registry import GROWTH_OPTIONS, STRATEGIES, STRATEGY_OPTIONS
from escalade.support.numbers import plain
from escalade.support.registry import Entry
from escalade.training.sources import without_digest

_SAME = ("seed", "generations", "env_steps", "seconds", "target_return", "backend", "info_keys")
_EVALUATION = ("eval_episodes", "eval_every")
"""Options, besides those of where a run runs, in which runs of one configuration may differ."""
_WHERE = [name for name, option in OPTIONS.items() if option.metadata["group"] == "run"]
_NOT_COMPARED = {*_SAME, *_EVALUATION, *_WHERE, "run"}
_SHORT = 12  # letters, at most, of the words for a value that is not set


@dataclass(frozen=True)
class RunFacts:
    """A run as its folder tells it."""

    folder: RunFolder
    task: str
    """The environment, or the class of the module of a run of ``evolve``."""
    target: float | None
    config: Config | None
    """None of a run of ``evolve``."""
    options: dict[str, Any]
    """All options of a run of ``train``; for ``evolve``, what its config.toml holds."""

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The contents of summary.json; empty where the run has not ended."""
        return self.folder.read_summary()

    @cached_property
    def curves(self) -> Curves:
        """The tables of the run; empty ones if it has only begun to start."""
        cut = self.options.get("cutoff") is not None
        return read_curves(self.folder.path, target=self.target, cut=cut)

    def latest(self, name: str) -> float | None:
        """A number of the run's summary, or the last one in its progress so far.

        None where there is none yet, or where what the run ended with is no number.
        """
        value = self.summary.get(name, "")
        if value is None:  # JSON's word for what is no number
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        column = self.curves.progress["generation" if name == "generations" else name]
        known = column[np.isfinite(column)]
        return float(known[-1]) if len(known) else None

    @property
    def solved(self) -> bool:
        """True where it met its target."""
        return self.summary.get("solved") is True

    @property
    def diverged(self) -> bool:
        """True where what its last evaluation gave is no number."""
        return bool(self.summary.get("eval_episodes")) and self.latest("eval_return_mean") is None

    def told(self) -> dict[str, Any]:
        """The options that a comparison shows where they differ: all but the seed and where the run ran."""
        hidden = {*_WHERE, "seed", "run"}
        return {name: value for name, value in self.flat.items() if name not in hidden}

    def compared(self) -> dict[str, Any]:
        """The options that runs of one configuration share."""
        return {name: value for name, value in self.flat.items() if name not in _NOT_COMPARED}

    @cached_property
    def flat(self) -> dict[str, Any]:
        """The options, those of the strategy alone by their own names, and the size of an own module."""
        own = {
            name if name not in OPTIONS else f"strategy:{name}": value
            for name, value in (self.options.get("strategy_options") or {}).items()
        }
        found = {name: value for name, value in self.options.items() if name != "strategy_options"} | own
        size = None if self.config is None else self.own_size
        return found if size is None else found | {"parameters": size}

    @property
    def own_size(self) -> int | None:
        """The size of a network of one's own; None of others, and before the run has ended."""
        return self.summary.get("parameters") if self.summary.get("network") == "own" else None


def read_facts(folder: RunFolder) -> RunFacts:
    """Read the facts of a run from its folder.

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
    """Options as they stand in a label: ``sigma=0.1, hidden=64,64``; of a path its last part.

    Those that the strategy does not have are left out, unless there are no others.
    """
    names = list(names)
    told = {name: _rounded(name, options.get(name)) for name in had_by_strategy(options, names) or names}
    if options.get("start_from") is not None and "start_from" in told:
        told["start_from"] = PurePath(told["start_from"]).name
    return ", ".join(f"{name}={value}" for name, value in told.items())


def shown(name: str, value: Any) -> str:
    """An option's value as a label or a table shows it."""
    if value is None or value == ():
        unset = OPTIONS[name].metadata["unset"] if name in OPTIONS else "default"
        return unset if len(unset) <= _SHORT else "default"
    if name == "start_from":
        return without_digest(value)[0]  # the path is its name; nobody reads the digest
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _rounded(name: str, value: Any) -> str:
    return plain(value) if isinstance(value, float) else shown(name, value)


def had_by_strategy(options: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """The ``names`` that are options of the run's strategy, or of no strategy."""
    entry = STRATEGIES.get(str(options.get("strategy")))
    missing = {*STRATEGY_OPTIONS} - entry.options if entry else set()
    missing |= {*GROWTH_OPTIONS} if entry and not entry.grows else set()
    return [name for name in names if name not in missing and (name in options or name in OPTIONS)]


def differing(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names whose value is not the same in all of these, in their order; a missing one is None."""
    names = dict.fromkeys(name for one in mappings for name in one)
    return [name for name in names if any(one.get(name) != mappings[0].get(name) for one in mappings)]


def ordered_text(value: Any) -> str:
    """A text that tells values apart, and not the orders of their keys: ``repr`` with keys sorted."""
    if not isinstance(value, Mapping):
        return repr(value)
    return "{" + ", ".join(f"{key!r}: {ordered_text(each)}" for key, each in sorted(value.items())) + "}"


@dataclass(frozen=True)
class Collection:
    """A folder with runs in it, as a report shows it."""

    name: str
    runs: Path
    """The run, or the folder of runs, that stands for all of them: the best trial's."""
    facts: Mapping[str, str]
    """The number of trials, and how they ended."""
    best: Mapping[str, str]
    """The options of the best trial."""
    pictures: Sequence[tuple[str, Path]]
    """Titles and png files."""


COLLECTIONS: Final[dict[str, Entry]] = {
    "sweep.toml": Entry("a sweep", "escalade.wings.many_runs.sweep:collection_of"),
}
"""Keys are files that only such folders have; homes are functions from a folder to a :class:`Collection`."""


def find_collection(folder: Path) -> Collection | None:
    """Read the collection in ``folder``; None if it is not one.

    Raises:
        InputError: it cannot be read, or none of its runs has ended.
    """
    for name, entry in COLLECTIONS.items():
        if (folder / name).is_file():
            found: Collection = entry.load()(folder)
            return found
    return None
