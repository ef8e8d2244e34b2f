"""The plan of a series: configurations with several seeds each, ordinary runs in one folder."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from escalade.config.files import read_config
from escalade.config.options import FREE, RESUMABLE, SETTLED, Config
from escalade.errors import InputError
from escalade.storage.files import path_of
from escalade.storage.run_folder import RunFolder
from escalade.training.described import differing, ordered_text, shown
from escalade.training.sources import absolute, without_digest

_MOST_SEEDS = 10_000


@dataclass(frozen=True)
class Planned:
    """One run of a series."""

    config: Config
    """Config of the run, with its seed and its folder."""
    begun: Config | None
    """The config that its folder holds already."""

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return Path(str(self.config.run_dir))

    @property
    def changeable(self) -> dict[str, Any]:
        """The options that the run is resumed with: those of the series, whatever it was begun with."""
        return {name: getattr(self.config, name) for name in RESUMABLE}

    @property
    def done(self) -> bool:
        """True if there is nothing left to run."""
        ended = RunFolder(self.folder).read_summary().get("stop_reason")
        if self.begun is None or ended in (None, "interrupted"):
            return False
        before = vars(self.begun)
        return all(before[name] == value for name, value in self.changeable.items() if name not in FREE)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds as they are typed: ``0-4``, ``0,3,7`` or both, ``0-4,9``.

    Raises:
        InputError: it is written in another way, or names a seed twice.
    """
    seeds: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,18})\s*(?:-\s*(\d{1,18})\s*)?", part, re.ASCII)
        low, high = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if not 0 <= high - low < _MOST_SEEDS:
            raise InputError(f"`seeds` {text!r} is not valid: it takes seeds such as 0-4 or 0,3,7")
        seeds += range(low, high + 1)
    if len(set(seeds)) < len(seeds):
        raise InputError(f"`seeds` {text!r} names a seed twice")
    return tuple(seeds)


def series_folder(
    configs: Mapping[str, Config], run_dir: str | PathLike[str] | None, code: Sequence[str] = ()
) -> Path:
    """The folder of a series: ``run_dir``, or one in runs/ that the same configurations always get.

    Its name ends with a digest of every option but seeds, budgets, evaluation, and where runs run.
    So whoever asks for the same again, or for more seeds, goes on in it. ``code`` is what tells apart what
    was given in Python.
    """
    if run_dir is not None:
        return path_of(run_dir, "choose another `run_dir`").absolute()
    tellings: list[Any] = [list(code)] if code else []
    for name, config in configs.items():
        hidden = {*RESUMABLE, "seed", "run_dir", "preset"}
        options = {
            option: ordered_text(value) for option, value in vars(config).items() if option not in hidden
        }
        tellings.append([name if len(configs) > 1 else "", options])
    digest = hashlib.sha256(json.dumps(tellings, sort_keys=True).encode()).hexdigest()[:8]
    first = next(iter(configs.values()))
    if len(configs) > 1:
        return path_of("runs").absolute() / f"grid-{digest}"
    subject = first.env.rpartition(":")[2].replace("/", "-")
    return path_of("runs").absolute() / subject / f"{first.strategy}-{digest}"


def plan_series(configs: Mapping[str, Config], seeds: Sequence[int] | None, folder: Path) -> list[Planned]:
    """The runs of a series, with what is there of them already.

    Args:
        configs: by name; of several, each has a folder of that name.
        seeds: of every configuration; None takes each one's own.
        folder: of the series.

    Raises:
        InputError: the folder holds a run of other options where one of the series goes.
    """
    runs: list[Planned] = []
    for name, config in configs.items():
        place = folder / name if len(configs) > 1 else folder
        chosen = seeds if seeds is not None else (config.seed,)
        asked = [config.replace(seed=seed, run_dir=str(place / f"seed{seed}")) for seed in chosen]
        runs += _with_one_source([Planned(run, _existing_run(run)) for run in asked])
    if RunFolder(folder).config.exists():
        raise InputError(f"`run_dir` {folder} is a run's own folder: a series needs one with runs in it")
    return runs


def _with_one_source(runs: list[Planned]) -> list[Planned]:
    """The runs of a configuration; those to come begin with the policy that the others began with."""
    recorded = next((one.begun.start_from for one in runs if one.begun is not None), None)
    source = {} if recorded is None else {"start_from": recorded}
    return [one if one.begun else replace(one, config=one.config.replace(**source)) for one in runs]


def reread(planned: Sequence[Planned]) -> list[Planned]:
    """The same runs, as their folders are now."""
    return [replace(one, begun=_existing_run(one.config)) for one in planned]


def _existing_run(config: Config) -> Config | None:
    """The config of the run that is in the folder; None where there is none.

    Raises:
        InputError: it is a run of other options.
    """
    folder = RunFolder(str(config.run_dir))
    if not folder.config.exists():
        return None
    begun = read_config(folder)
    wanted, found = dict(vars(config)), dict(vars(begun))
    settled = {name for name in SETTLED if wanted[name] in (None, "auto")}  # and recorded
    fixed = [name for name in wanted if name not in (*RESUMABLE, "run_dir", "preset", *settled)]
    if wanted["start_from"] is not None:
        wanted["start_from"] = absolute(wanted["start_from"])
        unknown = without_digest(wanted["start_from"])[1] is None  # which a run finds out
        if unknown and found.get("start_from"):
            found = found | {"start_from": without_digest(found["start_from"])[0]}
    others = differing([{name: one.get(name) for name in fixed} for one in (wanted, found)])
    if others:
        name = others[0]
        raise InputError(
            f"{folder.path} holds a run with `{name}` {shown(name, vars(begun)[name])}, not "
            f"{shown(name, wanted[name])}: name another `run_dir`"
        )
    return begun
