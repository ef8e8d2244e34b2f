"""Learning curves of any runs in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from escalade.errors import InputError
from escalade.media.charts import Chart, write_charts
from escalade.media.curves import X_AXES, axis_of, learning_curve
from escalade.storage.files import path_of, read_bytes
from escalade.support.numbers import whole_number
from escalade.wings.analysis.bands import Band, band, band_charts, curve_of
from escalade.wings.analysis.groups import AnyRun, RunGroup, group_runs

Over = Literal["steps", "seconds", "generations", "episodes"]


@dataclass(frozen=True)
class Picture:
    """A picture that was drawn, which a notebook shows if it is a png."""

    path: Path
    left_out: tuple[str, ...] = ()
    """Runs that are not in it, in words: those without an evaluation yet."""

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
    """Draw runs: one in full, the seeds of a configuration as one curve, configurations beside each other.

    One run is drawn with its population (:func:`escalade.media.curves.plot_run`). Of several, only the
    evaluations are drawn: for each configuration their interquartile mean over the runs, with a
    bootstrap interval (:func:`escalade.wings.analysis.bands.band`), in a panel for each environment.

    Args:
        runs: run folders, or folders of runs.
        output: the picture, png, pdf or svg.
        x: what curves are over: ``steps`` of training, ``seconds``, ``generations`` or ``episodes``.
        smooth: each point is the mean of this many in a row, the last of which is its own.
        group_by: the option, or options, by which runs are told apart, instead of their whole configuration.
        labels: names for the curves, in their order.

    Returns:
        The picture, and what it leaves out.

    Raises:
        InputError: a folder is no run, nothing can be drawn, or an argument is wrong.
        StorageFailure: the picture could not be written.
    """
    if x not in X_AXES:
        raise InputError(f"`x` {x!r} must be one of {', '.join(X_AXES)}")
    whole_number(smooth, "`smooth`", 1)
    groups = _labelled(group_runs(runs, group_by), labels)
    every = [run for group in groups for run in group.runs]
    if len(every) == 1:
        curves, title = every[0].curves, groups[0].task if labels is None else labels[0]
        if not len(curves.progress["generation"]):
            raise InputError(f"{every[0].folder.path} has no generation yet: there is no curve to draw")
        drawn = GroupCharts([replace(learning_curve(curves, x, smooth), title=title)], "", ())
    else:
        drawn = charts_of(groups, x, smooth)
        if not drawn.charts:
            raise InputError(
                f"none of the {len(every)} runs has an evaluation yet: there is no curve to draw"
            )
    write_charts(drawn.charts, output, drawn.caption)
    return Picture(path_of(output), drawn.left_out)


class GroupCharts(NamedTuple):
    """A chart for each task, with one curve for each configuration."""

    charts: list[Chart]
    caption: str
    left_out: tuple[str, ...]
    """Runs that have no evaluation yet, in words."""


def charts_of(groups: Sequence[RunGroup], x: str, smooth: int = 1) -> GroupCharts:
    """Return the charts of these groups."""
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


def _labelled(groups: list[RunGroup], labels: Sequence[str] | None) -> list[RunGroup]:
    if labels is None:
        return groups
    different = {(group.task, label) for group, label in zip(groups, labels, strict=False)}
    if len(labels) != len(groups) or len(different) < len(groups):
        curves = "; ".join(f"{group.task}: {group.label}" for group in groups)
        raise InputError(
            f"`labels`: {len(labels)} given for {len(groups)} curves, give each its own: {curves}"
        )
    return [replace(group, label=label) for group, label in zip(groups, labels, strict=True)]
