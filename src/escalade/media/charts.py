"""Charts as inline SVG: no script, no file from elsewhere, colours that follow the page's.

A line is told from others by its dashes as well as by its colour, and a chart says its numbers in words
for those who do not see it.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from escalade.media.scales import Array, averaged, labels, limits, short, thinned, ticks, usable

COLOURS = 8
"""Colours of a page, in its style sheet: c0 to c7."""
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2", "6 2 2 2 2 2")

_WIDTH, _HEIGHT = 420, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 12, 10, 40
_BUCKETS = 250
_FLAT = 4.0  # a level may make an axis so many times as long


@dataclass(frozen=True)
class Line:
    """One curve: points (at, values), both of shape (n,); what is not finite is left out."""

    label: str
    at: Array
    values: Array
    style: int = 0
    """Chooses colour and dashes."""
    strong: bool = False

    def in_words(self) -> str:
        """Its numbers, for those who do not see it."""
        values = self.values[usable(self.values)]
        if not len(values):
            return f"{self.label}: no numbers"
        told = values[0], values[-1], values.min(), values.max()
        first, last, low, high = (short(float(value)) for value in told)
        return f"{self.label}: from {first} to {last}, lowest {low}, highest {high}"


@dataclass(frozen=True)
class Area:
    """What is between two curves, all of shape (n,)."""

    label: str
    at: Array
    low: Array
    high: Array
    style: int = 0


@dataclass(frozen=True)
class Chart:
    """A chart, before it is drawn."""

    title: str
    unit: str
    """What the axis to the right counts."""
    lines: Sequence[Line] = ()
    areas: Sequence[Area] = ()
    levels: Sequence[tuple[str, float]] = ()
    """Numbers that are drawn as lines across, with their names."""
    note: str = ""
    ends: tuple[float, float] | None = None
    """Of the axis upwards; found from the numbers where it is None."""
    legend: bool = True
    """Whether the lines are named below it: not where the page has one legend for many charts."""

    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(usable(line.values).any() for line in self.lines) and not self.areas


class _Frame:
    """Where the numbers of a chart are on its paper."""

    def __init__(self, chart: Chart) -> None:
        given = [*(line.at for line in chart.lines), *(area.at for area in chart.areas)]
        ats = np.concatenate([np.zeros(1), *(at[usable(at)] for at in given)])
        first, last = float(ats.min()), float(ats.max())
        self.x = first, last if last > first else first + 1
        edges = [edge for area in chart.areas for edge in (area.low, area.high)]
        parts = [*(line.values for line in chart.lines), *edges]
        self.y = chart.ends or limits(parts)
        self.outside: list[str] = []  # names of levels that would press the curves flat
        for label, value in chart.levels:
            low, high = min(self.y[0], value), max(self.y[1], value)
            if high - low > _FLAT * (self.y[1] - self.y[0]):
                self.outside.append(label)
            else:
                self.y = low, high + (0.04 * (high - low) if high == value else 0.0)

    def across(self, at: Array | float) -> Array:
        return np.asarray(_LEFT + (at - self.x[0]) / (self.x[1] - self.x[0]) * (_WIDTH - _LEFT - _RIGHT))

    def up(self, value: Array | float) -> Array:
        inner = _HEIGHT - _TOP - _BOTTOM
        # Far outside is outside: drawing programs do not take every number.
        share = np.clip((value - self.y[0]) / (self.y[1] - self.y[0]), -9, 10)
        return np.asarray(_TOP + (1 - share) * inner)


def draw(chart: Chart, number: int) -> str:
    """The chart as an HTML figure; ``number`` must differ from that of others of the page."""
    frame, name = _Frame(chart), f"chart{number}"
    marks = [_area(frame, area) for area in chart.areas]
    marks += [_level(frame, *level) for level in chart.levels if level[0] not in frame.outside]
    marks += [_line(frame, line) for line in chart.lines]
    words = "; ".join([line.in_words() for line in chart.lines] + [area.label for area in chart.areas])
    return (
        f'<figure><h3 id="{name}t">{html.escape(chart.title)}</h3>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="{name}t {name}d">'
        f'<desc id="{name}d">{html.escape(f"Over {chart.unit}. {words}.")}</desc>'
        f'<clipPath id="{name}c"><rect x="{_LEFT}" y="{_TOP - 4}" width="{_WIDTH - _LEFT - _RIGHT + 2}" '
        f'height="{_HEIGHT - _TOP - _BOTTOM + 8}"/></clipPath>'
        f"{_axes(frame, chart.unit)}"
        f'<g clip-path="url(#{name}c)">{"".join(marks)}</g></svg>{_caption(chart, frame.outside)}</figure>'
    )


def swatch(style: int, strong: bool = False) -> str:
    """A short piece of a line, for legends."""
    return _swatch(f'd="M1 4H29" {_stroke(style, strong)}')


def _swatch(path: str) -> str:
    return f'<svg class="swatch" viewBox="0 0 30 8" aria-hidden="true"><path {path}/></svg>'


def _axes(frame: _Frame, unit: str) -> str:
    parts = []
    upwards, across = ticks(*frame.y), ticks(*frame.x)
    for value, label in zip(upwards, labels(upwards), strict=True):
        y = float(frame.up(value))
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    bottom = _HEIGHT - _BOTTOM
    for value, label in zip(across, labels(across), strict=True):
        x = float(frame.across(value))
        anchor = "end" if x > _WIDTH - 30 else "middle"
        parts.append(f'<path class="tick" d="M{x:.1f} {bottom}v4"/>')
        place = f'x="{x:.1f}" y="{bottom + 17}" text-anchor="{anchor}"'
        parts.append(f"<text {place}>{label}</text>")
    parts.append(f'<path class="tick" d="M{_LEFT} {bottom}H{_WIDTH - _RIGHT}"/>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(
        f'<text class="unit" x="{middle}" y="{_HEIGHT - 5}" text-anchor="middle">{html.escape(unit)}</text>'
    )
    return "".join(parts)


def _line(frame: _Frame, line: Line) -> str:
    good = usable(line.values) & usable(line.at)
    if not good.any():
        return ""
    at, values = thinned(line.at[good], line.values[good], _BUCKETS)
    points = _points(frame.across(at), frame.up(values))
    title = f"<title>{html.escape(line.in_words())}</title>"
    if len(at) == 1:
        return f'<path class="dot c{line.style % COLOURS}" d="M{points[0]}h.01">{title}</path>'
    return f'<path d="M{" ".join(points)}" {_stroke(line.style, line.strong)}>{title}</path>'


def _area(frame: _Frame, area: Area) -> str:
    good = usable(area.at) & usable(area.low) & usable(area.high)
    at, low, high = averaged([area.at[good], area.low[good], area.high[good]], _BUCKETS)
    there, back = frame.across(at), frame.across(at[::-1])
    points = " ".join(_points(there, frame.up(low)) + _points(back, frame.up(high[::-1])))
    title = f"<title>{html.escape(area.label)}</title>"
    return f'<path class="area c{area.style % COLOURS}" d="M{points}Z">{title}</path>' if points else ""


def _level(frame: _Frame, label: str, value: float) -> str:
    title = f"<title>{html.escape(label)}</title>"
    return f'<path class="level" d="M{_LEFT} {float(frame.up(value)):.1f}H{_WIDTH - _RIGHT}">{title}</path>'


def _points(across: Array, up: Array) -> list[str]:
    return [f"{x:.1f},{y:.1f}" for x, y in zip(across.tolist(), up.tolist(), strict=True)]


def _stroke(style: int, strong: bool) -> str:
    dashes = DASHES[style % len(DASHES)]
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'class="line c{style % COLOURS}{" strong" * strong}"{dash}'


def _caption(chart: Chart, outside: Sequence[str]) -> str:
    parts: list[str] = []
    if chart.legend:
        parts = [f"<span>{swatch(x.style, x.strong)}{html.escape(x.label)}</span>" for x in chart.lines]
        for area in chart.areas:
            block = _swatch(f'class="area c{area.style % COLOURS}" d="M1 0H29V8H1Z"')
            parts.append(f"<span>{block}{html.escape(area.label)}</span>")
    for label, _ in chart.levels:
        block = "" if label in outside else _swatch('class="level" d="M1 4H29"')
        beyond = " is beyond the axis" if label in outside else ""
        parts.append(f"<span>{block}{html.escape(label)}{beyond}</span>")
    if chart.note:
        parts.append(f"<span>{html.escape(chart.note)}</span>")
    return f"<figcaption>{''.join(parts)}</figcaption>" if parts else ""
