"""Charts of a report: from the tables of runs to curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from escalade.media.charts import Area, Chart, Line
from escalade.media.curves import X_AXES, Curves, learning_curve
from escalade.media.figure import Array
from escalade.recorders import COLUMNS
from escalade.recorders.row import QUANTILES
from escalade.strategies.novelty import CENTER

_NOTES = {
    "unperturbed_rank": "1: it beats every member",
    "update_ratio": "length of the update over that of the centre",
}
_NOVELTY = {
    "novelty_mean": "Novelty of the members, mean",
    "center_novelty": "Novelty of the centre",
    "fitness_weight": "Weight of fitness beside novelty",
}
_CUT = "episodes of members are cut short, those of evaluations are whole"
_MOST_LINES = 8  # of workers in one chart; of more, their spread is drawn

Workers = dict[str, tuple[Array, Array, Array]]
"""Generations, environment steps per second and idle shares, by worker or node."""


def shared_charts(runs: Sequence[Curves], over: str) -> list[Chart]:
    """Charts that hold every run: a curve each."""
    info = dict.fromkeys(name for run in runs for name in run.progress if name not in COLUMNS)
    returns = {"eval_return_mean": "Return of evaluations", "return_mean": "Mean return of the population"}
    titles = {
        **(returns if len(runs) > 1 else {}),
        "unperturbed_rank": "Rank of the unperturbed policy",
        "episode_length_mean": "Mean episode length, in steps",
        "sigma": "Sigma",
        "lr": "Step size (lr)",
        "update_ratio": "Update ratio",
        "steps_per_second": "Training steps per second",
        "nonfinite": "Episodes whose return was no usable number",
        **_NOVELTY,
        **{name: _info_title(name) for name in info if name not in (*_NOVELTY, CENTER)},
    }
    charts = [replace(learning_curve(runs[0], over), note=_cut(runs))] if len(runs) == 1 else []
    targets = {run.target for run in runs}
    for name, title in titles.items():
        lines = [run.line(run.name, name, over, style) for style, run in enumerate(runs)]
        note = _cut(runs) if name == "return_mean" else _NOTES.get(name, "")
        target = next(iter(targets)) if name in returns and len(targets) == 1 else None
        chart = Chart(title, X_AXES[over][1], lines, target=target, note=note, legend=False)
        unneeded = name == "nonfinite" and not any(np.nansum(line.values) for line in lines)
        if name in returns or not (chart.empty() or unneeded):
            charts.append(chart)
    return charts


def own_charts(run: Curves, workers: Workers, over: str) -> list[Chart]:
    """Charts of one run alone: its population and its workers."""
    unit, charts = X_AXES[over][1], []
    if run.population:
        at = run.at(over, run.population["generation"])
        low, lower, middle, upper, high = (run.population[name] for name in QUANTILES)
        areas = [Area("5 % to 95 %", at, low, high), Area("25 % to 75 %", at, lower, upper)]
        title = "Returns of the population, in quantiles"
        charts.append(Chart(title, unit, [Line("median", at, middle)], areas, note=_cut([run])))
    idle = {name: (run.at(over, at), 100 * share) for name, (at, _, share) in workers.items()}
    rates = {name: (run.at(over, at), rate) for name, (at, rate, _) in workers.items()}
    if idle:
        charts.append(replace(_spread("Time without work, in %", unit, idle), ends=(0.0, 104.0)))
        if any(np.nansum(rate) for _, rate in rates.values()):
            charts.append(_spread("Steps per second, evaluations included", unit, rates))
    return charts


def _cut(runs: Sequence[Curves]) -> str:
    return _CUT if any(run.cut for run in runs) else ""


def _spread(title: str, unit: str, of: Mapping[str, tuple[Array, Array]]) -> Chart:
    """A curve each of a few workers; of many, their median and their range."""
    if len(of) <= _MOST_LINES:
        lines = [Line(name, at, values, style) for style, (name, (at, values)) in enumerate(of.items())]
        return Chart(title, unit, lines)
    ats = np.unique(np.concatenate([at for at, _ in of.values()]))
    rows = np.stack([_last_known(at, values, ats) for at, values in of.values()])
    area = Area(f"all {len(of)} workers", ats, np.nanmin(rows, axis=0), np.nanmax(rows, axis=0), 2)
    return Chart(title, unit, [Line("median worker", ats, np.nanmedian(rows, axis=0), 2)], [area])


def _last_known(at: Array, values: Array, ats: Array) -> Array:
    """The latest of ``values`` at each of ``ats``; NaN before the first and after the last of them."""
    known = np.asarray(values[np.clip(np.searchsorted(at, ats, side="right") - 1, 0, len(at) - 1)])
    return np.where((ats >= at[0]) & (ats <= at[-1]), known, np.nan)


def _info_title(name: str) -> str:
    key = name.removesuffix("_mean")
    return f"{key.removeprefix('eval_')}, mean of evaluations" if key.startswith("eval_") else f"{key}, mean"
