"""Curves of several runs in one picture, a panel for each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from escalade.media.charts import Area, Chart, Line, write_charts
from escalade.media.curves import X_AXES
from escalade.storage.files import AnyPath
from escalade.support.numbers import counted
from escalade.wings.analysis.bands import Band, Curve

_CAPTION = "lines: interquartile mean of the runs' {what}; bands: its 95 % bootstrap interval"


def band_charts(
    panels: Mapping[str, Mapping[str, Band]],
    over: str = "steps",
    *,
    targets: Mapping[str, float] | None = None,
    single: Sequence[Curve] = (),
) -> list[Chart]:
    """Return a chart for each task, with a band for each of its settings.

    Args:
        panels: bands by label, by task. A label has the same colour and line style in all of them.
        over: a name of :data:`escalade.media.curves.X_AXES`.
        targets: by task; drawn as lines.
        single: curves of single runs, drawn thin in every panel.
    """
    labels = list(dict.fromkeys(label for bands in panels.values() for label in bands))
    # A run counts with its last evaluation until the next: curves go in steps.
    thin = [
        Line("" if place else "single runs", curve.at, curve.returns, None, steps=True)
        for place, curve in enumerate(single)
    ]
    charts = []
    for task, bands in panels.items():
        lines, areas = _parts(bands, labels, steps=True)
        target = (targets or {}).get(task)
        charts.append(Chart(task, X_AXES[over][1], [*thin, *lines], areas, target))
    return charts


def caption(panels: Mapping[str, Mapping[str, Band]], what: str = "evaluations") -> str:
    """Explain the lines and bands of :func:`band_charts`, which are ``what`` of the runs."""
    several = any(of.runs > 1 for bands in panels.values() for of in bands.values())
    return _CAPTION.format(what=what) if several else ""


def draw_profiles(bands: Mapping[str, Band], output: AnyPath) -> None:
    """Draw performance profiles, by method, into a png, pdf or svg file.

    Args:
        bands: for each method, the share of its runs that score above each of ``at``, with its interval.
        output: the picture.

    Raises:
        InputError: matplotlib is missing, or the output's ending is another.
        StorageFailure: the disk is full.
    """
    lines, areas = _parts(bands, list(bands), steps=False)
    what = "share of runs with a higher score"
    chart = Chart("performance profiles", "normalised score", lines, areas, ends=(-0.02, 1.02), what=what)
    write_charts([chart], output, "bands: 95 % stratified bootstrap interval")


def _parts(bands: Mapping[str, Band], labels: Sequence[str], *, steps: bool) -> tuple[list[Line], list[Area]]:
    """Bands as lines, which the legend names with their runs, and as areas, which it leaves out.

    The place of a label among ``labels`` chooses its looks.
    """
    lines, areas = [], []
    for label, of in bands.items():
        style = labels.index(label)
        named = f"{label} ({counted(of.runs, 'run')})"
        lines.append(Line(named, of.at, of.middle, style, strong=True, steps=steps))
        areas.append(Area("", of.at, of.low, of.high, style, steps=steps))
    return lines, areas
