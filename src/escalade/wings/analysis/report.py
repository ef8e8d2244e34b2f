"""A report of runs: read what their folders hold, and write one HTML file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from escalade.errors import InputError
from escalade.media.curves import X_AXES, axis_of
from escalade.storage.files import check_output, path_of, write_bytes
from escalade.storage.run_folder import RunFolder
from escalade.support.imports import check_installed
from escalade.training.described import Collection, find_collection
from escalade.wings.analysis.compare import comparison_of
from escalade.wings.analysis.facts import read_facts
from escalade.wings.analysis.groups import find_runs, group_facts, paths_of
from escalade.wings.analysis.plot import Over, charts_of
from escalade.wings.analysis.report_page import page
from escalade.wings.analysis.reported import Reported


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
    named = zip(folders, _names(folders), strict=True)
    reported = [Reported(read_facts(folder), name) for folder, name in named]
    axis = axis_of((run.facts.curves.progress for run in reported), over)
    check_installed("a report", "plot", "matplotlib")
    if video:
        from escalade.api.evaluate import render

        for folder in folders:
            render(folder, folder.path / "video.mp4")
    groups = group_facts([run.facts for run in reported])
    compared = (comparison_of(groups), charts_of(groups, axis)) if len(groups) > 1 else None
    write_bytes(output, page(reported, axis, collections, compared).encode())
    return output


def _names(folders: Sequence[RunFolder]) -> list[str]:
    """Return the paths of folders below the one that holds all of them."""
    paths = [folder.path.resolve() for folder in folders]
    above = os.path.commonpath([path.parent for path in paths])
    return [str(path.relative_to(above)) for path in paths]
