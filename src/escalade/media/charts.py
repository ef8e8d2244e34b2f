"""Charts: curves and bands as data, and the function that draws them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from escalade.media.figure import GREY, Array, check_picture, fit_returns, save_figure, style
from escalade.storage.files import AnyPath, path_of
from escalade.support.numbers import LARGEST, number
from escalade.support.output import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LETTERS = 44  # maximum length of a line in the legend
_MOST_DOTS = 25  # longest line whose points are marked
_PREFIXES = 1e4  # from here on, ticks of the y axis are 10k instead of 10000


@dataclass(frozen=True)
class Line:
    """One curve with points (at, values), both of shape (n,). Points that cannot be drawn are skipped."""

    label: str
    """Name in the legend. A line with an empty label is not in the legend."""
    at: Array
    values: Array
    style: int = 0
    """Number of the color and dashes."""
    strong: bool = False
    steps: bool = False
    """Draw steps instead of straight lines between points."""

    def points(self) -> tuple[Array, Array]:
        """Return the points that can be drawn."""
        known = np.isfinite(self.at) & np.isfinite(drawable(self.values))
        return self.at[known], self.values[known]

    def describe(self) -> str:
        """Return a text alternative of the curve."""
        values, name = self.points()[1], self.label and f"{self.label}: "
        if not len(values):
            return f"{name}no numbers"
        first, last, low, high = map(number, (values[0], values[-1], values.min(), values.max()))
        return f"{name}from {first} to {last}, lowest {low}, highest {high}"


@dataclass(frozen=True)
class Area:
    """The area between two curves. All arrays have the shape (n,)."""

    label: str
    at: Array
    low: Array
    high: Array
    style: int = 0
    steps: bool = False
    outer: bool = False
    """The limits of the y axis do not depend on this area, which may exceed them."""


@dataclass(frozen=True)
class Chart:
    """A chart as data."""

    title: str
    unit: str
    """Label of the x axis."""
    lines: Sequence[Line] = ()
    areas: Sequence[Area] = ()
    target: float | None = None
    """Drawn as a horizontal line, or only named in the legend if it is far from the curves."""
    note: str = ""
    what: str = ""
    """Label of the y axis."""

    def describe(self) -> str:
        """Return a text alternative of the chart."""
        target = [] if self.target is None else [f"target {number(self.target)}"]
        areas = [area.label for area in self.areas if area.label]
        parts = [*(line.describe() for line in self.lines), *areas, *target]
        return f"Over {self.unit}. {'; '.join(parts)}."

    def empty(self) -> bool:
        """Return True if there is nothing to draw."""
        return not self.areas and not any(len(line.points()[0]) for line in self.lines)


def drawable(values: Array) -> Array:
    """Return the values, with NaN for those too large for useful axes."""
    return np.where(np.abs(values) <= LARGEST, values, np.nan)


def figure_of(charts: Sequence[Chart], caption: str = "") -> Figure:
    """Draw charts side by side, each with its legend below.

    Args:
        charts: at least one chart.
        caption: text below the charts.
    """
    from matplotlib.figure import Figure

    columns = min(len(charts), 3)
    rows = -(-len(charts) // columns)
    figure = Figure(layout="constrained")
    places = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    most = 0
    for axes, chart in zip(places, charts, strict=False):
        _draw(axes, chart)
        labels = axes.get_legend_handles_labels()[1]
        most = max(most, len("\n".join(labels).splitlines()))
        if labels:
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False, fontsize="small")
    for axes in places[len(charts) :]:
        axes.set_visible(False)
    if caption:
        figure.supxlabel(caption, fontsize=8, color=GREY)
    figure.set_size_inches(max(6.8, 5.0 * columns), (4.0 + 0.2 * most) * rows)
    return figure


def write_charts(charts: Sequence[Chart], output: AnyPath, caption: str = "") -> None:
    """Draw charts (see :func:`figure_of`) to a png, pdf or svg file.

    Equal charts make identical files.

    Raises:
        InputError: matplotlib is missing, or the file extension is not supported.
        StorageFailure: the disk is full.
    """
    output = path_of(output, "choose a different `output`")
    check_picture(output)
    save_figure(figure_of(charts, caption), output)


def _draw(axes: Axes, chart: Chart) -> None:
    """Draw a chart without its legend."""
    for area in chart.areas:
        low, high = drawable(area.low), drawable(area.high)
        looks = {"color": style(area.style)["color"], "label": _wrapped(area.label)}
        step: Any = "post" if area.steps else None
        axes.fill_between(area.at, low, high, alpha=0.18, linewidth=0, step=step, **looks)
    for line in chart.lines:
        axes.plot(*line.points(), label=_wrapped(line.label), **_looks(line))
    _fit(axes, chart)
    _finish(axes, chart)


def _fit(axes: Axes, chart: Chart) -> None:
    """Fit the y axis to the curves, and draw the target, or name it in the legend if it is far from them."""
    values = [line.points()[1] for line in chart.lines]
    inner = [drawable(end) for area in chart.areas if not area.outer for end in (area.low, area.high)]
    outer = [drawable(end) for area in chart.areas if area.outer for end in (area.low, area.high)]
    shown = [] if chart.target is None or not abs(chart.target) <= LARGEST else [chart.target]
    seen = fit_returns(axes, [*values, *inner], shown, around=outer)
    for target in shown:
        if seen:
            axes.axhline(target, color=GREY, linestyle="--", linewidth=1, label=f"target {number(target)}")
        else:
            axes.plot([], [], " ", label=f"target {number(target)} (outside of the axis)")


def _finish(axes: Axes, chart: Chart) -> None:
    from matplotlib.ticker import EngFormatter

    axes.set_title(visible(chart.title))
    axes.set_xlabel(chart.unit)
    axes.set_ylabel(chart.what)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.02)
    for axis, ends, least in ((axes.xaxis, axes.get_xlim(), 1000), (axes.yaxis, axes.get_ylim(), _PREFIXES)):
        if max(map(abs, ends)) >= least:
            axis.set_major_formatter(EngFormatter(sep=""))


def _looks(line: Line) -> dict[str, Any]:
    looks: dict[str, Any] = {"drawstyle": "steps-post" if line.steps else "default"}
    looks |= style(line.style) | {"linewidth": 2.0 if line.strong else 1.5}
    at = line.points()[0]
    dotted = len(np.unique(at)) == 1 or (line.strong and len(at) <= _MOST_DOTS)
    return looks | ({"marker": "o", "markersize": 4} if dotted else {})


def _wrapped(label: str) -> str:
    """Wrap a label, so that the legend is narrow."""
    hidden = "\u200b" * label.startswith("_")  # matplotlib omits labels with an underscore from legends
    return textwrap.fill(hidden + visible(label), _LETTERS, break_long_words=False, break_on_hyphens=False)
