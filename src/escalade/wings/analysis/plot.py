"""Draw learning curves of runs into one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from escalade.errors import InputError
from escalade.media.charts import Chart, write_charts
from escalade.media.curves import X_AXES, axis_of, learning_curve
from escalade.storage.files import path_of, read_bytes
from escalade.support.numbers import counted, whole_number
from escalade.wings.analysis.bands import Band, band, band_charts, curve_of
from escalade.wings.analysis.groups import AnyRun, RunGroup, group_runs

Over = Literal["steps", "seconds", "generations", "episodes"]


@dataclass(frozen=True)
class Picture:
    """Path of a picture. Notebooks display it if it is a png."""

    path: Path
    left_out: tuple[str, ...] = ()
    """Messages about runs that are not in the picture because they have no evaluation yet."""

    def __fspath__(self) -> str:
        return str(self.path)

    def _repr_png_(self) -> bytes | None:
        return read_bytes(self.path) if self.path.suffix.lower() == ".png" else None


def plot(
    runs: AnyRun | Sequence[AnyRun],
    output: AnyRun = "curve.png",
    *,
    x: Over = "steps",
    smooth: int = 1,
    group_by: str | Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
) -> Picture:
    """Draw the learning curves of runs.

    A single run is drawn with its population (:func:`escalade.media.curves.plot_run`). With several runs,
    only evaluations are drawn: one curve per configuration, the interquartile mean over its runs with a
    bootstrap interval (:func:`escalade.wings.analysis.bands.band`), in one panel per environment.

    Args:
        runs: run folders, or folders of runs.
        output: path of the picture, png, pdf or svg.
        x: x axis: ``steps`` of training, ``seconds``, ``generations`` or ``episodes``.
        smooth: window of the trailing mean, in evaluations.
        group_by: option, or options, that define a configuration. None compares all options, as
            :func:`escalade.wings.analysis.groups.group_runs` describes.
        labels: names of the curves, in order.

    Returns:
        The path of the picture, and the runs that are not in it.

    Raises:
        InputError: a folder is not a run, there is nothing to draw, or an argument is wrong.
        StorageFailure: the picture could not be written.
    """
    if x not in X_AXES:
        raise InputError(f"`x` {x!r} must be one of {', '.join(X_AXES)}")
    whole_number(smooth, "`smooth`", 1)
    groups = _labeled(group_runs(runs, group_by), labels)
    every = [run for group in groups for run in group.runs]
    if len(every) == 1:
        curves, title = every[0].curves, groups[0].task if labels is None else labels[0]
        if not len(curves.progress["generation"]):
            raise InputError(f"nothing to draw: {every[0].folder.path} has not finished a generation yet")
        drawn = GroupCharts([replace(learning_curve(curves, x, smooth), title=title)], "", ())
    else:
        drawn = charts_of(groups, x, smooth)
        if not drawn.charts:
            raise InputError(f"nothing to draw: none of the {len(every)} runs has an evaluation yet")
    write_charts(drawn.charts, output, drawn.caption)
    return Picture(path_of(output), drawn.left_out)


class GroupCharts(NamedTuple):
    """One chart per task, with one curve per configuration."""

    charts: list[Chart]
    caption: str
    left_out: tuple[str, ...]
    """Messages about runs that have no evaluation yet."""


def charts_of(groups: Sequence[RunGroup], x: str, smooth: int = 1) -> GroupCharts:
    """Return one chart per task, with one curve per group."""
    x = axis_of((run.curves.progress for group in groups for run in group.runs), x)
    panels: dict[str, dict[str, Band]] = {}
    targets: dict[str, set[float | None]] = {}
    left_out: list[str] = []
    for group in groups:
        targets.setdefault(group.task, set()).update(run.target for run in group.runs)
        curves = {run.folder.path: curve_of(run, x, smooth) for run in group.runs}
        shown = [curve for curve in curves.values() if len(curve.at)]
        if shown:
            panels.setdefault(group.task, {})[group.label] = band(shown)
        without = (path for path, curve in curves.items() if not len(curve.at))
        left_out += [f"left out: {path} has no evaluation yet" for path in without]
    caption = "lines: interquartile mean of the runs' evaluations; bands: its 95 % bootstrap interval"
    shared = {task: of.pop() for task, of in targets.items() if len(of) == 1}
    return GroupCharts(band_charts(panels, x, targets=shared), caption, tuple(left_out))


def _labeled(groups: list[RunGroup], labels: Sequence[str] | None) -> list[RunGroup]:
    if labels is None:
        return groups
    different = {(group.task, label) for group, label in zip(groups, labels, strict=False)}
    if len(labels) != len(groups) or len(different) < len(groups):
        curves = "; ".join(f"{group.task}: {group.label}" for group in groups)
        raise InputError(
            f"`labels` has {counted(len(labels), 'name')} for {len(groups)} curves; pass distinct names for: "
            f"{curves}"
        )
    return [replace(group, label=label) for group, label in zip(groups, labels, strict=True)]
