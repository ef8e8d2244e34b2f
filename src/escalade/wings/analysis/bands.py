"""Several runs as one curve: the interquartile mean, and a band of confidence about it; their charts.

Agarwal et al. 2021 (arXiv 2108.13264), whose library rliable does the same: with a handful of runs a mean
follows its outliers, and a median one run.
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
    """One run's evaluations: where they were, shape (n,), and their mean returns, shape (n,)."""

    at: Array
    returns: Array
    solved: bool
    """True where the run ended because it met its target: its last evaluation then stands."""


@dataclass(frozen=True)
class Band:
    """The curve of several runs, at points ``at``; all shapes are (points,)."""

    at: Array
    middle: Array
    """Interquartile mean of the runs' evaluations."""
    low: Array
    high: Array
    """The ends of the 95 % interval."""
    runs: int


def curve_of(run: RunFacts, over: str, smooth: int = 1) -> Curve:
    """Return a run's evaluations, which may be none.

    Args:
        run: the run.
        over: a name of :data:`escalade.media.curves.X_AXES`.
        smooth: each point is the mean of this many in a row, the last of which is its own.
    """
    at, returns = evaluations(run.curves, over)
    return Curve(at, smoothed(returns, smooth), run.solved)


def band(curves: Sequence[Curve]) -> Band:
    """One curve of several runs of the same task and settings.

    Between its evaluations a run counts with the last one. The band begins where all runs have one, and ends
    with the first run that ends unsolved, or the last one that ends. Its interval is the percentile
    bootstrap's: runs are drawn whole, with replacement, among those of their own task (which makes it
    stratified).
    """
    first = max(float(curve.at[0]) for curve in curves)
    ends = [float(curve.at[-1]) for curve in curves]
    unsolved = [end for curve, end in zip(curves, ends, strict=True) if not curve.solved]
    at = np.linspace(first, max(first, min(unsolved, default=max(ends))), _POINTS)
    values = np.stack([_as_of(curve, at) for curve in curves])
    low, high = interval(lambda drawn: interquartile_mean(drawn[0], axis=1), [values])
    return Band(at, interquartile_mean(values), low, high, len(curves))


def _as_of(curve: Curve, at: Array) -> Array:
    """The run's last evaluation at or before each point."""
    return curve.returns[np.searchsorted(curve.at, at, side="right") - 1]


def band_charts(
    panels: Mapping[str, Mapping[str, Band]],
    over: str = "steps",
    *,
    targets: Mapping[str, float | None] | None = None,
) -> list[Chart]:
    """Return a chart for each task, with a band for each of its settings.

    Args:
        panels: bands by label, by task. A label has the same colour and line style in all of them.
        over: a name of :data:`escalade.media.curves.X_AXES`.
        targets: by task; drawn as lines.
    """
    labels = list(dict.fromkeys(label for bands in panels.values() for label in bands))
    charts = []
    for task, bands in panels.items():
        lines, areas = _parts(bands, labels)
        target = (targets or {}).get(task)
        charts.append(Chart(task, X_AXES[over][1], lines, areas, target, what="return"))
    return charts


def draw_profiles(bands: Mapping[str, Band], output: AnyPath) -> None:
    """Draw performance profiles, by method, into a png, pdf or svg file.

    Args:
        bands: for each method, the share of its runs that score above each of ``at``, with its interval.
        output: the picture.

    Raises:
        InputError: matplotlib is missing, or the output's ending is another.
        StorageFailure: the disk is full.
    """
    lines, areas = _parts(bands, list(bands))
    what = "share of runs with a higher score"
    chart = Chart("performance profiles", "normalised score", lines, areas, what=what)
    write_charts([chart], output, "bands: 95 % stratified bootstrap interval")


def _parts(bands: Mapping[str, Band], labels: Sequence[str]) -> tuple[list[Line], list[Area]]:
    """Bands as lines, which the legend names with their runs, and as areas, which it leaves out.

    The place of a label among ``labels`` chooses its looks. They go in steps: a run counts with its last
    evaluation until the next, and a share of runs changes at their scores.
    """
    lines, areas = [], []
    for label, of in bands.items():
        style = labels.index(label)
        named = f"{label} ({counted(of.runs, 'run')})"
        lines.append(Line(named, of.at, of.middle, style, strong=True, steps=True))
        areas.append(Area("", of.at, of.low, of.high, style, steps=True))
    return lines, areas
