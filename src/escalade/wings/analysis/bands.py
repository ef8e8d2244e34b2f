"""Aggregate curves of several runs: the interquartile mean with a confidence band, and charts of both.

Follows Agarwal et al. 2021 (arXiv 2108.13264) and their library rliable. With a handful of runs, a mean is
dominated by outliers and a median depends on a single run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from escalade.media.charts import Area, Chart, Line, write_charts
from escalade.media.curves import X_AXES, evaluations, smoothed
from escalade.storage.files import AnyPath
from escalade.support.numbers import counted
from escalade.wings.analysis.facts import RunFacts
from escalade.wings.analysis.statistics import interquartile_mean, interval

Array = NDArray[np.float64]

_POINTS = 200


@dataclass(frozen=True)
class Curve:
    """Evaluations of one run: their positions on the x axis and mean returns, both of shape (n,)."""

    at: Array
    returns: Array
    solved: bool
    """True if the run stopped at its target. Its last evaluation then counts until the end of the curve."""


@dataclass(frozen=True)
class Band:
    """Aggregate curve of several runs at the points ``at``. All arrays have shape (points,)."""

    at: Array
    middle: Array
    """Interquartile mean of the runs' evaluations."""
    low: Array
    high: Array
    """Bounds of the 95 % confidence interval."""
    runs: int


def curve_of(run: RunFacts, over: str, smooth: int = 1) -> Curve:
    """Return the evaluations of a run.

    The curve is empty if there is no evaluation yet.

    Args:
        run: the run.
        over: x axis, a key of :data:`escalade.media.curves.X_AXES`.
        smooth: window of the trailing mean, in evaluations.
    """
    at, returns = evaluations(run.curves, over)
    return Curve(at, smoothed(returns, smooth), run.solved)


def band(curves: Sequence[Curve]) -> Band:
    """Aggregate runs of the same task and settings into one curve.

    Between two evaluations, a run counts with the earlier one. The band starts at the first point where all
    runs have an evaluation. It ends with the first unsolved run, or with the last run if all are solved. The
    interval is a stratified percentile bootstrap: runs are resampled with replacement within their task.
    """
    first = max(float(curve.at[0]) for curve in curves)
    ends = [float(curve.at[-1]) for curve in curves]
    unsolved = [end for curve, end in zip(curves, ends, strict=True) if not curve.solved]
    at = np.linspace(first, max(first, min(unsolved, default=max(ends))), _POINTS)
    values = np.stack([_as_of(curve, at) for curve in curves])
    low, high = interval(lambda drawn: interquartile_mean(drawn[0], axis=1), [values])
    return Band(at, interquartile_mean(values), low, high, len(curves))


def _as_of(curve: Curve, at: Array) -> Array:
    """Return the run's last evaluation at or before each point."""
    return curve.returns[np.searchsorted(curve.at, at, side="right") - 1]


def band_charts(
    panels: Mapping[str, Mapping[str, Band]],
    over: str = "steps",
    *,
    targets: Mapping[str, float | None] | None = None,
) -> list[Chart]:
    """Return one chart per task, with one band per configuration.

    Args:
        panels: bands by label, for each task. A label has the same color and line style in all charts.
        over: x axis, a key of :data:`escalade.media.curves.X_AXES`.
        targets: target return of each task, drawn as a line.
    """
    labels = list(dict.fromkeys(label for bands in panels.values() for label in bands))
    charts = []
    for task, bands in panels.items():
        lines, areas = _parts(bands, labels)
        target = (targets or {}).get(task)
        charts.append(Chart(task, X_AXES[over][1], lines, areas, target, what="return"))
    return charts


def draw_profiles(bands: Mapping[str, Band], output: AnyPath) -> None:
    """Draw the performance profile of each method into a png, pdf or svg file.

    Args:
        bands: for each method, the share of its runs that score above each threshold in ``at``.
        output: path of the picture.

    Raises:
        InputError: matplotlib is missing, or the file extension is not supported.
        StorageFailure: the disk is full.
    """
    lines, areas = _parts(bands, list(bands))
    what = "share of runs with a higher score"
    chart = Chart("performance profiles", "normalized score", lines, areas, what=what)
    write_charts([chart], output, "bands: 95 % stratified bootstrap interval")


def _parts(bands: Mapping[str, Band], labels: Sequence[str]) -> tuple[list[Line], list[Area]]:
    """Return bands as lines, which appear in the legend with their run counts, and areas, which do not.

    The position of a label in ``labels`` selects its style. Curves are step functions: a run counts with its
    last evaluation until the next one, and a share of runs changes at their scores.
    """
    lines, areas = [], []
    for label, of in bands.items():
        style = labels.index(label)
        named = f"{label} ({counted(of.runs, 'run')})"
        lines.append(Line(named, of.at, of.middle, style, strong=True, steps=True))
        areas.append(Area("", of.at, of.low, of.high, style, steps=True))
    return lines, areas
