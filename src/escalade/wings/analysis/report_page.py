"""The HTML page of a report: self-contained, in light and dark mode, for phones and desktops."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template

from escalade.media.charts import Chart, figure_of
from escalade.media.figure import rendered
from escalade.storage.files import read_bytes
from escalade.training.described import Collection, differing
from escalade.wings.analysis.comparison import Comparison, Table
from escalade.wings.analysis.panels import coverage, own_charts, paths, shared_charts
from escalade.wings.analysis.plot import GroupCharts
from escalade.wings.analysis.reported import Reported

_PAGE = Path(__file__).with_name("report.html")
_FILMS = {".mp4": "video/mp4", ".gif": "image/gif"}
"""Media types of films, by ending."""


def page(
    runs: Sequence[Reported],
    over: str,
    sweeps: Sequence[Collection] = (),
    compared: tuple[Comparison, GroupCharts] | None = None,
) -> str:
    """Return the page as HTML.

    Args:
        runs: at least one run.
        over: x axis of the curves, a key of :data:`escalade.media.curves.X_AXES`.
        sweeps: sweeps that the runs belong to.
        compared: comparison of the configurations, if there are several.
    """
    title = ", ".join(dict.fromkeys(run.facts.task for run in runs))
    many = "a run" if len(runs) == 1 else f"{len(runs)} runs"
    sections = [
        *([] if compared is None else [_comparison(*compared)]),
        *map(_sweep, sweeps),
        _section("Result", _result(runs) + "".join(map(_notes, runs))),
        *(_film(run, len(runs) > 1) for run in runs if run.facts.folder.films),
        _learning(runs, over),
        _section("Configuration", _configuration(runs)),
        _section("Versions", _versions(runs)),
        _section("Reproduce", "".join(_commands(run, len(runs) > 1) for run in runs)),
    ]
    return Template(_PAGE.read_text()).substitute(title=_e(title), many=many, sections="".join(sections))


def chart_html(chart: Chart) -> str:
    """Return the chart as an HTML figure."""
    drawn = rendered(figure_of([replace(chart, title="")]), "svg")
    return _image(chart.title, "image/svg+xml", drawn, chart.describe(), chart.note)


def _image(title: str, kind: str, data: bytes, words: str = "", caption: str = "") -> str:
    """Return a picture as an HTML figure with embedded data."""
    below = f"<figcaption>{_e(caption)}</figcaption>" if caption else ""
    image = f'<img class="plot" alt="{_e(words or title)}" src="{_data_url(kind, data)}">'
    return f"<figure><h3>{_e(title)}</h3>{image}{below}</figure>"


def _data_url(kind: str, data: bytes) -> str:
    """Return a data URL."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _sweep(sweep: Collection) -> str:
    chosen = f"<h3>Options of the best trial</h3>{_pairs(sweep.best)}" if sweep.best else ""
    pictures = "".join(_image(title, "image/png", read_bytes(path)) for title, path in sweep.pictures)
    shown = f'<h3>Trials</h3><div class="charts">{pictures}</div>' if pictures else ""
    return _section(f"Sweep: {sweep.name}", _pairs(sweep.facts) + chosen + shown)


def _result(runs: Sequence[Reported]) -> str:
    return _pairs(runs[0].row()) if len(runs) == 1 else _table([run.row() for run in runs])


def _comparison(found: Comparison, drawn: GroupCharts) -> str:
    tables = "".join(map(_wide, found.tables()))
    return _section("Comparison", f"{tables}{_charts(drawn.charts)}<p>{_e(drawn.caption)}</p>")


def _learning(runs: Sequence[Reported], over: str) -> str:
    curves = {run.name: run.facts.curves for run in runs}
    parts = [_section("Learning", _charts(shared_charts(curves, over)))]
    for run in runs:
        name = f": {run.name}" if len(runs) > 1 else ""
        if run.archived is not None:
            charts = [paths(run.archived), coverage(run.archived, run.facts.curves, over)]
            parts.append(_section(f"Novelty{name}", _charts(charts)))
        if own := own_charts(run.facts.curves, run.workers, over):
            parts.append(_section(f"Population and workers{name}", _charts(own)))
    return "".join(parts)


def _charts(charts: Sequence[Chart]) -> str:
    return f'<div class="charts">{"".join(map(chart_html, charts))}</div>'


def _configuration(runs: Sequence[Reported]) -> str:
    options, several = [run.options for run in runs], len(runs) > 1
    differ = differing(options)
    shared = {name: value for name, value in options[0].items() if name not in differ}
    changed = {name: value for name, value in shared.items() if any(name in run.changed for run in runs)}
    rest = {name: value for name, value in shared.items() if name not in changed}
    parts = []
    if several:
        same = "<p>All options are the same.</p>"
        parts.append(f"<h3>Differences</h3>{_columns(runs, options, differ) if differ else same}")
    if changed:
        heading = "Shared, changed from the default" if several else "Changed from the default"
        parts.append(f"<h3>{heading}</h3>{_pairs(changed)}")
    if rest:
        summary = f"<summary>{len(rest)} options at their defaults</summary>"
        parts.append(f"<details>{summary}{_pairs(rest)}</details>")
    return "".join(parts)


def _columns(runs: Sequence[Reported], values: Sequence[Mapping[str, str]], names: Sequence[str]) -> str:
    """Return a table with one row per run and one column per name."""
    rows = zip(runs, values, strict=True)
    return _table([{"run": run.name} | {name: of.get(name, "-") for name in names} for run, of in rows])


def _versions(runs: Sequence[Reported]) -> str:
    known = [run.versions for run in runs]
    if not any(known):
        return "<p>Versions are recorded at the end of a run.</p>"
    differ = differing(known)
    return _columns(runs, known, differ) if differ else _pairs(known[0])


def _commands(run: Reported, named: bool) -> str:
    parts = [f"<h3>{_e(run.name)}</h3>"] if named else []
    for text, command in run.commands():
        parts.append(f"<p>{_e(text)}</p>")
        if command:  # spans allow line breaks only between two flags
            flags = " ".join(f"<span>{_e(part)}</span>" for part in re.split(r" (?=--)", command))
            parts.append(f"<pre><code>{flags}</code></pre>")
    return "".join(parts)


def _film(run: Reported, named: bool) -> str:
    film = run.facts.folder.films[0]
    kind = _FILMS[film.suffix]
    source = _data_url(kind, read_bytes(film))
    label = f"An episode of {run.facts.task}, played by {run.name}"
    if kind.startswith("image/"):
        shown = f'<img class="film" alt="{_e(label)}" src="{source}">'
    else:
        how = f'controls loop muted playsinline aria-label="{_e(label)}"'
        shown = f'<video class="film" {how} src="{source}"></video>'
    return _section(f"Film{f': {run.name}' if named else ''}", shown)


def _notes(run: Reported) -> str:
    return "".join(f'<p class="note">{_e(run.name)}: {_e(note)}</p>' for note in run.notes())


def _section(title: str, content: str) -> str:
    return f"<section><h2>{_e(title)}</h2>{content}</section>"


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    return _wide(Table("", tuple(rows[0]), tuple(tuple(row.values()) for row in rows)))


def _wide(table: Table) -> str:
    """Return a table in a box that scrolls sideways if the table is wider than the page."""
    return f'<div class="wide" role="region" aria-label="table" tabindex="0">{table.html()}</div>'


def _pairs(values: Mapping[str, str]) -> str:
    items = "".join(f"<div><dt>{_e(name)}</dt><dd>{_e(value)}</dd></div>" for name, value in values.items())
    return f"<dl>{items}</dl>"


def _e(text: str) -> str:
    return html.escape(text)
