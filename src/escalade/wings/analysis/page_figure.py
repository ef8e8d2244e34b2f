"""A chart in a page: inline SVG whose colours and letters are the page's, in light and in dark.

A line is told from others by its dashes as well as by its colour, and a chart says its numbers in words
for those who do not see it.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from escalade.media.charts import BEYOND, Area, Chart, Line, draw, drawable
from escalade.media.figure import COLOURS, GREY, reproducible, style
from escalade.wings.analysis.plane import MOST_PATHS, Archived, draw_plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 420, 250  # in the units of the style sheet's letters
_STRETCHES = 250

_VARIABLES = {colour.lower(): f"var(--c{place})" for place, colour in enumerate(COLOURS)}
_VARIABLES |= {GREY: "var(--soft)", "#b0b0b0": "var(--soft)"}
"""The page's colours, for those that matplotlib draws with."""

_SHORTER: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r'<g id="told ([^"]*)">', r"<g><title>\1</title>"),
    (r'(<g) id="[^"]*"', r"\1"),
    (r" transform=\"rotate\(-?0 [^\"]*\"|font-family: [^;]*; |font-size: 12.5px; |fill: none; ", ""),
    (r'(?<= )(?:d|x|y|width|height)="[^"]*"', lambda found: _rounded(found[0])),
    (r"#[0-9a-f]{6}\b", lambda found: _VARIABLES.get(found[0], found[0])),
    (r'clip-path="[^"]*" style="[^"]*stroke-opacity: 0.2;[^"]*"', 'class="grid"'),
    (r"\s+", " "),
    (r"<g/>|(?<=>) | (?=<|\")", ""),
    (r"<g>(<path [^>]*/>|<text [^<]*</text>)</g>", r"\1"),
)
"""From matplotlib's SVG to the page's: titles for marks, no other names, short numbers, CSS colours."""


def _rounded(attribute: str) -> str:
    short = re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), attribute)
    return short if "C" in short else re.sub(r"\s+L\s+", " ", short)  # after M, and no curve, L is understood


def figure_html(chart: Chart, place: int) -> str:
    """The chart as an HTML figure; ``place`` must differ from that of others of the page."""
    name = f"chart{place}"
    marks, target = _marks(lambda axes: draw(axes, _thinned(chart)), name)
    words = "; ".join([line.in_words() for line in chart.lines] + [area.label for area in chart.areas])
    return _figure(chart.title, f"Over {chart.unit}. {words}.", marks, _caption(chart, target), name)


def plane_html(archived: Archived, place: int) -> str:
    """An archive as an HTML figure; ``place`` as in :func:`figure_html`."""

    def paint(axes: Axes) -> str:
        draw_plane(axes, archived)
        return ""

    name, across = f"chart{place}", archived.places()[1]
    marks, _ = _marks(paint, name)
    numbers = [str(number) for number in sorted(set(archived.centers.tolist()))]
    paths = [(swatch(int(number)), f"path of centre {number}") for number in numbers[: MOST_PATHS + 1]]
    upwards = [("", f"upwards: {across[1]}"), ("", "blue: early generations, orange: late ones")]
    caption = _spans([*(paths if len(paths) <= MOST_PATHS else []), *upwards])
    return _figure("Behaviours in the archive", f"{archived.in_words()}.", marks, caption, name)


def _figure(title: str, words: str, marks: str, caption: str, name: str) -> str:
    return (
        f'<figure><h3 id="{name}t">{html.escape(title)}</h3>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="{name}t {name}d">'
        f'<desc id="{name}d">{html.escape(words)}</desc>{marks}</svg>{caption}</figure>'
    )


def _thinned(chart: Chart) -> Chart:
    """The chart with few points: a line's highest and lowest of each stretch, an area's means."""

    def line(of: Line) -> Line:
        at, values = of.points()
        if len(at) <= 2 * _STRETCHES:
            return of
        parts = np.array_split(np.arange(len(at)), _STRETCHES)
        ends = [sorted({part[values[part].argmin()], part[values[part].argmax()]}) for part in parts]
        kept = np.concatenate(ends)
        return replace(of, at=at[kept], values=values[kept])

    def area(of: Area) -> Area:
        if len(of.at) <= _STRETCHES:
            return of
        parts = np.array_split(np.stack([of.at, drawable(of.low), drawable(of.high)]), _STRETCHES, axis=1)
        at, low, high = np.array([part.mean(axis=1) for part in parts]).T
        return replace(of, at=at, low=low, high=high)

    return replace(chart, lines=[line(of) for of in chart.lines], areas=[area(of) for of in chart.areas])


def _marks(paint: Callable[[Axes], str], name: str) -> tuple[str, str]:
    """The drawing, whose ids hold a hash of ``name``; and what ``paint`` returns: words for the target."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    text = io.StringIO()
    with rc_context({"svg.fonttype": "none", "font.size": 12.5}), reproducible(name):
        figure = Figure(figsize=(_WIDTH / 72, _HEIGHT / 72), layout="constrained")
        axes = figure.subplots()
        axes.margins(x=0.02)
        target = paint(axes)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axes.tick_params(length=0, pad=5)
        axes.spines["left"].set_visible(False)
        axes.spines["bottom"].set_color(GREY)
        for part in (figure, axes):
            part.patch.set_visible(False)
        for mark in (*axes.lines, *axes.collections):
            mark.set_gid(f"told {mark.get_label()}")
        figure.savefig(text, format="svg")
    drawing = text.getvalue()
    drawing = drawing[drawing.index("<g ") : drawing.rindex("</svg>")]
    for pattern, shorter in _SHORTER:
        drawing = re.sub(pattern, shorter, drawing)
    return drawing, target


def swatch(place: int) -> str:
    """A short piece of a line, for legends."""
    looks = style(place)
    dash = "" if looks["linestyle"] == "-" else " ".join(f"{1.5 * part:g}" for part in looks["linestyle"][1])
    return _swatch(
        f'd="M1 4H29" style="stroke: var(--c{place % len(COLOURS)}); stroke-dasharray: {dash or 0}"'
    )


def _swatch(path: str) -> str:
    return f'<svg class="swatch" viewBox="0 0 30 8" aria-hidden="true"><path {path}/></svg>'


def _caption(chart: Chart, target: str) -> str:
    shown: list[tuple[str, str]] = []
    if chart.legend:
        shown = [(swatch(line.style or 0), line.label) for line in chart.lines]
        for area in chart.areas:
            path = f'd="M1 0H29V8H1Z" style="fill: var(--c{area.style % len(COLOURS)}); opacity: .3"'
            shown.append((_swatch(path), area.label))
    if target:
        line = _swatch('d="M1 4H29" style="stroke: var(--soft); stroke-dasharray: 4 2"')
        shown.append(("" if target.endswith(BEYOND) else line, target))
    return _spans([*shown, ("", chart.note)])


def _spans(shown: Sequence[tuple[str, str]]) -> str:
    """A caption of marks and labels; none where no label is."""
    spans = [f"<span>{mark}{html.escape(label)}</span>" for mark, label in shown if label]
    return f"<figcaption>{''.join(spans)}</figcaption>" if spans else ""
