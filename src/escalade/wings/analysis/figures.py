"""Charts as figures of a page: matplotlib's SVG, on white, whose numbers stand in words beside it.

A line is told from others by its dashes as well as by its colour.
"""

from __future__ import annotations

import base64
import html
import io
from typing import TYPE_CHECKING

from escalade.media.charts import Chart, draw
from escalade.media.figure import reproducible, style
from escalade.wings.analysis.plane import Archived, draw_plane

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INCHES = (5.6, 3.6)


def chart_html(chart: Chart) -> str:
    """Return the chart as an HTML figure."""
    figure = _figure()
    target = draw(figure.subplots(), chart)
    told = [*(line.in_words() for line in chart.lines), *(area.label for area in chart.areas), target]
    below = [chart.note] if chart.legend else [target, chart.note]
    return _picture(figure, chart.title, f"Over {chart.unit}. {_joined(told)}.", _joined(below), chart.legend)


def plane_html(archived: Archived) -> str:
    """Return an archive as an HTML figure."""
    figure = _figure()
    draw_plane(figure.subplots(), archived)
    colours = "blue: early generations, orange: late ones"
    return _picture(figure, "Behaviours in the archive", f"{archived.in_words()}.", colours)


def image_html(title: str, kind: str, data: bytes, words: str = "", caption: str = "") -> str:
    """Return a picture as an HTML figure that needs no other file."""
    below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    image = f'<img class="plot" alt="{html.escape(words or title)}" src="{data_url(kind, data)}">'
    return f"<figure><h3>{html.escape(title)}</h3>{image}{below}</figure>"


def data_url(kind: str, data: bytes) -> str:
    """Return an address that holds the data itself."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def swatch(place: int) -> str:
    """Return a short piece of the line with this number, for legends."""
    colour, drawn = style(place).values()
    dashes = "" if drawn == "-" else " ".join(f"{1.5 * part:g}" for part in drawn[1])
    line = f'd="M1 4H29" stroke="{colour}" stroke-dasharray="{dashes}" stroke-width="2"'
    return f'<svg class="swatch" viewBox="0 0 30 8" aria-hidden="true"><path {line}/></svg>'


def _figure() -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=_INCHES, layout="constrained")


def _picture(figure: Figure, title: str, words: str, caption: str, legend: bool = True) -> str:
    from matplotlib import rc_context

    (axes,) = figure.axes
    if legend and (labels := axes.get_legend_handles_labels()[1]):
        columns = 1 if max(map(len, labels)) > 30 else 2
        figure.legend(loc="outside lower left", ncols=columns, frameon=False, fontsize="small")
    drawn = io.BytesIO()
    with rc_context({"svg.fonttype": "none"}), reproducible("escalade"):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return image_html(title, "image/svg+xml", drawn.getvalue(), words, caption)


def _joined(parts: list[str]) -> str:
    return "; ".join(part for part in parts if part)
