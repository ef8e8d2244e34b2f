"""Learning curves of any runs in one picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from escalade.errors import InputError
from escalade.media.charts import Chart, write_charts
from escalade.media.curves import X_AXES, axis_of, plot_run
from escalade.storage.files import path_of, read_bytes
from escalade.support.numbers import whole_number
from escalade.wings.analysis.bands import Band, Curve, band, read_curve
from escalade.wings.analysis.groups import AnyRun, RunGroup, group_runs
from escalade.wings.analysis.profiles import band_charts, caption

_EVALUATION, _MEAN = "eval_return_mean", "return_mean"
_MOST_SINGLE = 20  # curves of single runs below the one that they make

Over = Literal["steps", "seconds", "generations", "episodes"]


@dataclass(frozen=True)
class Picture:
    """A picture that was drawn, which a notebook shows if it is a png or svg."""

    path: Path
    left_out: tuple[str, ...] = ()
    """Runs that are not in it, in words: those without an evaluation yet, and copies of other runs."""

    def __fspath__(self) -> str:
        return str(self.path)

    def _repr_png_(self) -> bytes | None:
        return self._content(".png")

    def _repr_svg_(self) -> str | None:
        content = self._content(".svg")
        return None if content is None else content.decode()

    def _content(self, ending: str) -> bytes | None:
        return read_bytes(self.path) if self.path.suffix.lower() == ending else None


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
        title = groups[0].task if labels is None else f"{groups[0].task}: {labels[0]}"
        cut = every[0].options.get("cutoff") is not None
        if not (every[0].has(_EVALUATION) or every[0].has(_MEAN)):
            raise InputError(f"{every[0].folder.path} has no generation yet: there is no curve to draw")
        plot_run(every[0].folder, output, every[0].target, title, x=x, smooth=smooth, cut=cut)
        young = []
    else:
        young = _plot_groups(groups, output, x, smooth)
    copies = [copy for group in groups for copy in group.copies.items()]
    left_out = [*young, *(f"{copy} is a copy of {original}" for copy, original in copies)]
    return Picture(path_of(output), tuple(f"left out: {what}" for what in left_out))


def _plot_groups(groups: Sequence[RunGroup], output: AnyRun, x: str, smooth: int) -> list[str]:
    charts, below = charts_of(groups, x, smooth)
    every = [run for group in groups for run in group.runs]
    if not charts:
        raise InputError(f"none of the {len(every)} runs has an evaluation yet: there is no curve to draw")
    write_charts(charts, output, below)
    of = _drawn_column(groups)
    return [f"{run.folder.path} has no evaluation yet" for run in every if not run.has(of)]


def _drawn_column(groups: Sequence[RunGroup]) -> str:
    evaluated = any(run.has(_EVALUATION) for group in groups for run in group.runs)
    return _EVALUATION if evaluated else _MEAN


def charts_of(groups: Sequence[RunGroup], x: str, smooth: int = 1) -> tuple[list[Chart], str]:
    """Return a chart for each task, with one curve for each configuration, and the caption of all of them."""
    every = [run for group in groups for run in group.runs]
    x = axis_of((run.columns for run in every), x)
    of = _drawn_column(groups)
    panels: dict[str, dict[str, Band]] = {}
    curves: list[Curve] = []
    for group in groups:
        curves = [
            read_curve(run.folder, x, run.solved, smooth=smooth, of=of) for run in group.runs if run.has(of)
        ]
        if curves:
            panels.setdefault(group.task, {})[group.label] = band(curves)
    alone = curves if len(groups) == 1 and len(curves) <= _MOST_SINGLE else []
    what = "evaluations" if of == _EVALUATION else "population means"
    return band_charts(panels, x, targets=_targets(groups), single=alone), caption(panels, what)


def _labelled(groups: list[RunGroup], labels: Sequence[str] | None) -> list[RunGroup]:
    if labels is None:
        return groups
    if len(labels) != len(groups):
        curves = "; ".join(f"{group.task}: {group.label}" for group in groups)
        raise InputError(f"`labels`: {len(labels)} given for {len(groups)} curves: {curves}")
    if len({(group.task, label) for group, label in zip(groups, labels, strict=True)}) < len(groups):
        raise InputError("`labels`: two curves of a task have the same: give each its own")
    return [replace(group, label=label) for group, label in zip(groups, labels, strict=True)]


def _targets(groups: Iterable[RunGroup]) -> dict[str, float]:
    """The targets of the tasks whose runs all have the same."""
    found: dict[str, set[float | None]] = {}
    for group in groups:
        found.setdefault(group.task, set()).add(group.target)
    alone = {task: next(iter(goals)) for task, goals in found.items() if len(goals) == 1}
    return {task: goal for task, goal in alone.items() if goal is not None}
