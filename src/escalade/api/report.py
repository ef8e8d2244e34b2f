"""A report of runs: read what their folders hold, and write one HTML file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from escalade.api.groups import find_runs
from escalade.api.sweep.reported import with_sweeps
from escalade.config.commands import changed, text_of, train_command
from escalade.config.conversion import parse_toml
from escalade.config.files import curve_of, is_evolved, read_config
from escalade.config.options import OPTIONS, Config
from escalade.errors import InputError
from escalade.media.curves import X_AXES
from escalade.media.panels import Curves
from escalade.media.report import FILMS, Reported, write_report
from escalade.media.scales import Array
from escalade.recorders import population, read_notes, read_progress, read_table
from escalade.storage.run_folder import RunFolder
from escalade.support.numbers import number

_MOST_NOTES = 20  # of a run, in a report
_EVOLVED = "It is a run of escalade.evolve: call evolve with the same module, fitness and options, in Python."


def report(
    runs: str | PathLike[str] | Sequence[str | PathLike[str]],
    output: str | PathLike[str] = "report.html",
    *,
    over: str = "steps",
    video: bool = False,
) -> Path:
    """Write a report of runs into one HTML file, which needs no other file and no network.

    Args:
        runs: run folders, or one; a run that still goes on is reported as far as it is. A folder of runs,
            such as that of ``--seeds``, stands for the runs in it; the folder of a sweep for the runs of its
            best trial, and adds what the sweep found.
        output: the file, ``x.html``; one of that name is replaced.
        over: what curves are drawn over: ``steps`` of training, ``seconds``, ``generations`` or
            ``episodes``.
        video: whether to film the latest policy of each run first, into its folder's video.mp4. A film
            that is there already, video.mp4 or video.gif, is shown in any case.

    Returns:
        The file.

    Raises:
        InputError: a folder is no run and no sweep, a sweep is at work in it or has no trial that ended,
            an argument is wrong, or a film cannot be made.
        EnvironmentFailure: the environment raised while it was filmed.
        StorageFailure: the disk is full.
    """
    places = [Path(run) for run in ([runs] if isinstance(runs, str | PathLike) else runs)]
    if over not in X_AXES:
        raise InputError(f"`over` {over!r} must be one of {', '.join(X_AXES)}")
    output = Path(output)
    if output.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"`output` {output} must end in .html")
    if not output.parent.is_dir():
        raise InputError(f"`output` {output}: there is no folder {output.parent}")
    found, sweeps = with_sweeps(places)
    folders = find_runs(found)
    names = _names(folders)
    reported = [_reported(folder, name) for folder, name in zip(folders, names, strict=True)]
    if video:
        from escalade.api.evaluate import render

        for folder in folders:
            render(folder, folder.path / "video.mp4")
        films = map(_film, folders)
        reported = [replace(one, film=film) for one, film in zip(reported, films, strict=True)]
    write_report(reported, output, over, sweeps)
    return output


def _names(folders: Sequence[RunFolder]) -> list[str]:
    """The folders' names, with as much of what is above them as it takes to tell them apart."""
    paths = [folder.path.resolve() for folder in folders]
    for parts in range(1, max(len(path.parts) for path in paths) + 1):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(set(paths)):
            break
    return names


def _reported(folder: RunFolder, name: str) -> Reported:
    progress = {key: np.array(values) for key, values in read_progress(folder.progress).items()}
    summary = folder.read_summary()
    subject, target = curve_of(folder)
    config = None if is_evolved(folder) else read_config(folder)
    cut = config is not None and config.cutoff is not None
    curves = Curves(name, progress, _population(folder), _workers(folder), target, cut)
    if config is None:
        values = parse_toml(folder.config)
        options = {key: text_of(value) for key, value in values.items()}
        own, commands = frozenset(options), [(_EVOLVED, "")]
    else:
        options = {key: text_of(getattr(config, key)) for key in OPTIONS if key != "run_dir"}
        own, commands = frozenset(changed(config)), _commands(config, summary)
    versions = summary.get("versions")
    return Reported(
        curves,
        subject,
        _facts(name, subject, options, progress, summary),
        options,
        own,
        {str(key): str(value) for key, value in versions.items()} if isinstance(versions, dict) else {},
        commands,
        _film(folder),
        _notes(folder, curves, summary),
    )


def _facts(
    name: str,
    subject: str,
    options: Mapping[str, str],
    progress: Mapping[str, Array],
    summary: Mapping[str, Any],
) -> dict[str, str]:
    """A row of the table of runs."""

    def last(column: str) -> Any:
        values = progress[column][np.isfinite(progress[column])]
        return float(values[-1]) if len(values) else None

    evaluations = progress["eval_return_mean"][np.isfinite(progress["eval_return_mean"])]
    spread, mean = summary.get("eval_return_std"), summary.get("eval_return_mean", last("eval_return_mean"))
    best = summary.get("best_return", float(evaluations.max()) if len(evaluations) else None)
    if "env" in summary and best is not None and mean is not None:
        best = max(best, mean)  # the run's best is that of its generations: its last evaluation came after
    evaluated = _number(mean)
    return {
        "run": name,
        "trained": subject,
        "strategy": options.get("strategy", "-"),
        "seed": options.get("seed", "-"),
        "population": options.get("population", "-"),
        "evaluation": f"{evaluated} ± {_number(spread)}" if spread is not None else evaluated,
        "best": _number(best),
        "target": "-" if summary.get("target_return") is None else _number(summary["target_return"]),
        "generations": _number(summary.get("generations", last("generation"))),
        "steps": _number(summary.get("env_steps", last("env_steps"))),
        "seconds": _number(summary.get("seconds", last("seconds"))),
        "ended": str(summary.get("stop_reason", "not yet")),
    }


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return "-"
    return number(value)


def _commands(config: Config, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The command that runs it again; where the clock ended it, also one that gives the same bits."""
    own = train_command(config)
    generations, same = summary.get("generations"), ("generations", "solved", "env_steps")
    if summary.get("stop_reason") in same or not isinstance(generations, int) or not generations:
        return [("Trains with the same options and seed:", own)]
    counted = config.replace(seconds=None, env_steps=None, target_return=None, generations=generations)
    return [
        ("Trains with the same options and seed, until the same limit:", own),
        (f"Runs the same {generations:,} generations, bit for bit:", train_command(counted)),
    ]


def _population(folder: RunFolder) -> dict[str, Array]:
    if not folder.population.exists():
        return {}
    columns = {name: _numbers(cells) for name, cells in read_table(folder.population).items()}
    return columns if set(population.COLUMNS) <= columns.keys() else {}


def _workers(folder: RunFolder) -> dict[str, tuple[Array, Array, Array]]:
    """By worker, or by node of a cluster: generations, steps per second, idle shares."""
    found: dict[str, tuple[Array, Array, Array]] = {}
    for path, key, title in ((folder.cluster, "node", "node"), (folder.workers, "worker", "worker")):
        if not path.exists():
            continue
        table = read_table(path)
        if not {"generation", key, "env_steps_per_second", "idle_share"} <= table.keys():
            continue
        who = np.array(table[key])
        numbers = [_numbers(table[name]) for name in ("generation", "env_steps_per_second", "idle_share")]
        for name in dict.fromkeys(table[key]):
            at, rate, idle = (column[who == name] for column in numbers)
            found[f"{title} {name}"] = at, rate, idle
    return found


def _numbers(cells: Sequence[str]) -> Array:
    def number(cell: str) -> float:
        try:
            return float(cell)
        except ValueError:
            return math.nan

    return np.array([number(cell) for cell in cells], np.float64)


def _film(folder: RunFolder) -> Path | None:
    paths = (folder.path / f"video{ending}" for ending in FILMS)
    return next((path for path in paths if path.is_file()), None)


def _notes(folder: RunFolder, curves: Curves, summary: Mapping[str, Any]) -> list[str]:
    said = read_notes(folder.notes)
    notes = said[-_MOST_NOTES:]
    if len(said) > len(notes):
        notes.insert(0, f"{len(said) - len(notes)} earlier notes are in {folder.notes.name}")
    if not summary:
        notes.append("the run has not ended: this is how far it is")
    if not curves.population:
        notes.append("it has no population.csv, from which quantiles are drawn: it is of an earlier version")
    if not curves.workers and str(summary.get("workers", "")) != "0":
        notes.append("there is no record of its workers' idle time")
    return notes
