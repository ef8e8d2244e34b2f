"""Plan a series: ordinary runs in one folder, of one or more configurations with several seeds each."""

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
    """Config of the existing run in the folder, if any."""

    @property
    def folder(self) -> Path:
        """Folder of the run."""
        return Path(str(self.config.run_dir))

    @property
    def changeable(self) -> dict[str, Any]:
        """Options of the series to resume the run with. They replace those it was started with."""
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
    """Parse seeds such as ``0-4``, ``0,3,7`` or ``0-4,9``.

    Raises:
        InputError: the text has a different form or repeats a seed.
    """
    seeds: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,18})\s*(?:-\s*(\d{1,18})\s*)?", part, re.ASCII)
        low, high = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if not 0 <= high - low < _MOST_SEEDS:
            raise InputError(f"`seeds` {text!r} must be an increasing range or a list, such as 0-4 or 0,3,7")
        seeds += range(low, high + 1)
    if len(set(seeds)) < len(seeds):
        raise InputError(f"`seeds` {text!r} repeats a seed; remove the repetition")
    return tuple(seeds)


def series_folder(
    configs: Mapping[str, Config], run_dir: str | PathLike[str] | None, code: Sequence[str] = ()
) -> Path:
    """Return the folder of a series: ``run_dir``, or a folder in runs/ derived from the configurations.

    Its name ends with a digest of all options except seeds, budgets, evaluation and execution. The same
    configurations, also with more seeds, therefore continue in the same folder. ``code`` describes user code
    that the digest must cover.
    """
    if run_dir is not None:
        return path_of(run_dir, "choose a different `run_dir`").absolute()
    parts: list[Any] = [list(code)] if code else []
    for name, config in configs.items():
        hidden = {*RESUMABLE, "seed", "run_dir", "preset"}
        options = {
            option: ordered_text(value) for option, value in vars(config).items() if option not in hidden
        }
        parts.append([name if len(configs) > 1 else "", options])
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]
    first = next(iter(configs.values()))
    if len(configs) > 1:
        return path_of("runs").absolute() / f"grid-{digest}"
    subject = first.env.rpartition(":")[2].replace("/", "-")
    return path_of("runs").absolute() / subject / f"{first.strategy}-{digest}"


def plan_series(configs: Mapping[str, Config], seeds: Sequence[int] | None, folder: Path) -> list[Planned]:
    """Plan the runs of a series, including those that exist already.

    Args:
        configs: configurations by name. If there are several, each has a subfolder of that name.
        seeds: seeds for each configuration; None uses the seed of each config.
        folder: folder of the series.

    Raises:
        InputError: the folder of a planned run contains a run with different options.
    """
    runs: list[Planned] = []
    for name, config in configs.items():
        place = folder / name if len(configs) > 1 else folder
        chosen = seeds if seeds is not None else (config.seed,)
        all_runs = [config.replace(seed=seed, run_dir=str(place / f"seed{seed}")) for seed in chosen]
        runs += _with_one_source([Planned(run, _existing_run(run)) for run in all_runs])
    if RunFolder(folder).config.exists():
        raise InputError(f"`run_dir` {folder} is the folder of a single run; choose a different one")
    return runs


def _with_one_source(runs: list[Planned]) -> list[Planned]:
    """Return the runs with the same starting policy: new ones start from that of the existing ones."""
    recorded = next((one.begun.start_from for one in runs if one.begun is not None), None)
    source = {} if recorded is None else {"start_from": recorded}
    return [one if one.begun else replace(one, config=one.config.replace(**source)) for one in runs]


def reread(planned: Sequence[Planned]) -> list[Planned]:
    """Return the same runs with the current state of their folders."""
    return [replace(one, begun=_existing_run(one.config)) for one in planned]


def _existing_run(config: Config) -> Config | None:
    """Return the config of the run in the folder, or None if it contains no run.

    Raises:
        InputError: the run has different options.
    """
    folder = RunFolder(str(config.run_dir))
    if not folder.config.exists():
        return None
    begun = read_config(folder)
    wanted, found = dict(vars(config)), dict(vars(begun))
    settled = {name for name in SETTLED if wanted[name] in (None, "auto")}  # resolved by the run
    fixed = [name for name in wanted if name not in (*RESUMABLE, "run_dir", "preset", *settled)]
    if wanted["start_from"] is not None:
        wanted["start_from"] = absolute(wanted["start_from"])
        unknown = without_digest(wanted["start_from"])[1] is None  # added by the run
        if unknown and found.get("start_from"):
            found = found | {"start_from": without_digest(found["start_from"])[0]}
    others = differing([{name: one.get(name) for name in fixed} for one in (wanted, found)])
    if others:
        name = others[0]
        raise InputError(
            f"{folder.path} contains a run with `{name}` {shown(name, vars(begun)[name])}, not "
            f"{shown(name, wanted[name])}; choose a different `run_dir`"
        )
    return begun
