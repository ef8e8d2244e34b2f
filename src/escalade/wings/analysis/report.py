"""Write a report of runs as one HTML file."""

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
    x: Over = "steps",
    video: bool = False,
) -> Path:
    """Write a report of runs into one self-contained HTML file.

    A report of several configurations starts with the tables of :func:`escalade.compare` and one curve per
    configuration.

    Args:
        runs: one or several run folders, finished or not. A folder of runs, such as that of ``--seeds``,
            adds all runs in it. A sweep's folder adds the runs of its best trial and the sweep's findings.
        output: path of the file, ``x.html``. An existing file is replaced.
        x: x axis of the curves: ``steps`` of training, ``seconds``, ``generations`` or ``episodes``.
        video: film the latest policy of each run first, into video.mp4 in its folder. Without it, an
            existing video.mp4 or video.gif is shown.

    Returns:
        The path of the file.

    Raises:
        InputError: a folder is neither a run nor a sweep, a sweep is still running or has no finished trial,
            an argument is wrong, or a film cannot be made.
        EnvironmentFailure: the environment raised while it was filmed.
        StorageFailure: the disk is full.
    """
    places = paths_of(runs)
    if x not in X_AXES:
        raise InputError(f"`x` {x!r} must be one of {', '.join(X_AXES)}")
    output = path_of(output, "choose a different `output`")
    check_output(output, ".html", ".htm")
    collections: list[Collection] = []
    for at, place in enumerate(places):
        if collection := find_collection(place):
            collections.append(collection)
            places[at] = collection.runs
    folders = find_runs(places)
    named = zip(folders, _names(folders), strict=True)
    reported = [Reported(read_facts(folder), name) for folder, name in named]
    axis = axis_of((run.facts.curves.progress for run in reported), x)
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
    """Return the paths of folders relative to their common parent."""
    paths = [folder.path.resolve() for folder in folders]
    above = os.path.commonpath([path.parent for path in paths])
    return [str(path.relative_to(above)) for path in paths]
