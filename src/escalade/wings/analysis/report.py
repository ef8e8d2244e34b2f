"""A report of runs: read what their folders hold, and write one HTML file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from escalade.api.collections import Collection, find_collection
from escalade.config.code import of_a_script
from escalade.config.commands import changed, text_of, train_command
from escalade.config.options import Config
from escalade.errors import InputError
from escalade.media.curves import X_AXES, Curves, numbers_of, read_curves, table_of
from escalade.media.figure import Array
from escalade.recorders import read_notes
from escalade.storage.files import check_output, path_of
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import Stored
from escalade.strategies.novelty import read_archive
from escalade.support.imports import check_installed
from escalade.support.numbers import counted, number
from escalade.training.card import same_again
from escalade.training.run_facts import RunFacts, read_facts
from escalade.wings.analysis.compare import compare
from escalade.wings.analysis.compare_tables import tables
from escalade.wings.analysis.groups import find_runs, group_runs, paths_of
from escalade.wings.analysis.panels import Workers
from escalade.wings.analysis.plane import Archived
from escalade.wings.analysis.plot import Over, charts_of
from escalade.wings.analysis.report_page import Compared, Reported, write_report

_MOST_NOTES = 20  # of a run, in a report
_OWN = "Its network is one of yours: call escalade.train with these options and the same network, in Python."
_SCRIPT = "It has {} of a script: call escalade.train with these options there, in Python."
_EVOLVED = "It is a run of escalade.evolve: call evolve with the same module, fitness and options, in Python."


def report(
    runs: str | PathLike[str] | Sequence[str | PathLike[str]],
    output: str | PathLike[str] = "report.html",
    *,
    over: Over = "steps",
    video: bool = False,
) -> Path:
    """Write a report of runs into one HTML file, which needs no other file and no network.

    A report of several configurations begins with the tables of :func:`escalade.compare` and with one curve
    for each configuration.

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
    places = paths_of(runs)
    if over not in X_AXES:
        raise InputError(f"`over` {over!r} must be one of {', '.join(X_AXES)}")
    output = path_of(output, "choose another `output`")
    check_output(output, ".html", ".htm")
    collections: list[Collection] = []
    for at, place in enumerate(places):
        if collection := find_collection(place):
            collections.append(collection)
            places[at] = collection.runs
    folders = find_runs(places)
    every, names = list(map(read_facts, folders)), _names(folders)
    check_installed("a report", "plot", "matplotlib")
    for facts in every:
        facts.columns  # noqa: B018 - read before anything is filmed: a policy alone has no progress
    if video:
        from escalade.api.evaluate import render

        for folder in folders:
            render(folder, folder.path / "video.mp4")
    reported = [_reported(facts, name) for facts, name in zip(every, names, strict=True)]
    write_report(reported, output, over, collections, _compared(folders, over))
    return output


def _compared(folders: Sequence[RunFolder], over: str) -> Compared | None:
    groups = group_runs([folder.path for folder in folders])
    if len(groups) < 2:
        return None
    found = compare([folder.path for folder in folders])
    return Compared(tables(found), *charts_of(groups, over))


def _names(folders: Sequence[RunFolder]) -> list[str]:
    """The folders' names, with as much of what is above them as it takes to tell them apart."""
    paths = [folder.path.resolve() for folder in folders]
    for parts in range(1, max(len(path.parts) for path in paths) + 1):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(set(paths)):
            break
    return names


def _reported(facts: RunFacts, name: str) -> Reported:
    folder, config, versions = facts.folder, facts.config, facts.summary.get("versions")
    curves = read_curves(folder.path, name, facts.target, cut=facts.options.get("cutoff") is not None)
    workers = _workers(folder)
    options = {key: text_of(value) for key, value in facts.options.items() if key != "run_dir"}
    archived, lost = _archived(folder) if facts.options.get("novelty") is not None else (None, [])
    return Reported(
        curves,
        facts.task,
        _row(facts, name, options),
        options,
        frozenset(options if config is None else changed(config)),
        {str(key): str(value) for key, value in versions.items()} if isinstance(versions, dict) else {},
        _again(facts),
        workers,
        next(iter(folder.films), None),
        [*_notes(facts, curves, workers), *lost],
        archived,
    )


def _row(facts: RunFacts, name: str, options: Mapping[str, str]) -> dict[str, str]:
    """A row of the table of runs."""
    summary = facts.summary
    evaluations = [value for value in facts.columns["eval_return_mean"] if math.isfinite(value)]
    spread, mean = summary.get("eval_return_std"), facts.latest("eval_return_mean")
    better = min if facts.options.get("direction") == "minimize" else max
    best = summary.get("best_return", better(evaluations, default=None))
    if "env" in summary and best is not None and mean is not None:
        best = max(best, mean)  # the run's best is that of its generations: its last evaluation came after
    return {
        "run": name,
        "trained": facts.task,
        **{option: options.get(option, "-") for option in ("strategy", "seed", "population")},
        "evaluation": f"{_number(mean)} ± {_number(spread)}" if spread is not None else _number(mean),
        "best": _number(best),
        "target": _number(facts.target),
        "generations": _number(facts.latest("generations")),
        "steps": _number(facts.latest("env_steps")),
        "seconds": _number(facts.latest("seconds")),
        "ended": str(summary.get("stop_reason", "not yet")),
    }


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return "-"
    return number(value)


def _again(facts: RunFacts) -> list[tuple[str, str]]:
    """The commands that run it again, each behind what it does; words alone where that needs Python."""
    if facts.config is None:
        return [(_EVOLVED, "")]
    if facts.own_size is not None:
        return [(_OWN, "")]
    script = of_a_script(vars(facts.config))
    return [(_SCRIPT.format(script[0]), "")] if script else _commands(facts.config, facts.summary)


def _commands(config: Config, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The command that runs it again, and the one that gives the same bits, whatever ended it."""
    again = [("Trains with the same options and seed, until the same limit:", train_command(config))]
    changes = same_again(summary)
    if count := changes.get("generations"):
        same = train_command(config.replace(**changes))
        again.append((f"Makes the same {counted(count, 'update')} of the centre, bit for bit:", same))
    return again


def _workers(folder: RunFolder) -> dict[str, tuple[Array, Array, Array]]:
    """Generations, steps per second and idle shares, by worker or by node of a cluster."""
    found: dict[str, tuple[Array, Array, Array]] = {}
    for path, kind in ((folder.cluster, "node"), (folder.workers, "worker")):
        table = table_of(path)  # once: a run that goes on adds rows
        numbers = numbers_of(table, ("generation", "env_steps_per_second", "idle_share"))
        who = np.array(table.get(kind, []) if numbers else [])
        for name in dict.fromkeys(who.tolist()):
            at, rate, idle = (column[who == name] for column in numbers.values())
            found[f"{kind} {name}"] = at, rate, idle
    return found


def _archived(folder: RunFolder) -> tuple[Archived | None, list[str]]:
    """The archive in the latest checkpoint, None where nothing is in it yet; a note where it is lost."""

    def check(content: Stored) -> Archived | None:
        behaviours, origins = read_archive(content.tensors)
        return Archived(behaviours, *origins.T) if len(behaviours) else None

    try:
        found = folder.checkpoints.load_latest(check)
        return found.checkpoint, [
            f"{problem}: the archive is that of an earlier one" for problem in found.problems
        ]
    except InputError as problem:
        return None, [f"the archive of behaviours is left out: {problem}"]


def _notes(facts: RunFacts, curves: Curves, workers: Workers) -> list[str]:
    path = facts.folder.notes
    said = read_notes(path)
    notes = said[-_MOST_NOTES:]
    if len(said) > len(notes):
        notes.insert(0, f"{len(said) - len(notes)} earlier notes are in {path.name}")
    if not facts.summary:
        notes.append("the run has not ended: this is how far it is")
    if not curves.population:
        notes.append("it has no population.csv, from which quantiles are drawn")
    if not workers and str(facts.summary.get("workers", "")) != "0":
        notes.append("there is no record of its workers' idle time")
    return notes
