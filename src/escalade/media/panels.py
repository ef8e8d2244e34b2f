"""Which charts a report has: from the tables of runs to curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from escalade.media.charts import Area, Chart, Line
from escalade.media.curves import X_AXES
from escalade.media.scales import Array, short
from escalade.recorders import COLUMNS

_NOTES = {
    "unperturbed_rank": "1: it beats every member",
    "update_ratio": "length of the update over that of the centre",
}
_CUT = "episodes of members are cut short, those of evaluations are whole"
_MOST_LINES = 8  # of workers in one chart; of more, their spread is drawn


@dataclass(frozen=True)
class Curves:
    """The tables of a run. Columns are arrays, one number a row, NaN for an empty cell."""

    name: str
    progress: Mapping[str, Array]
    population: Mapping[str, Array] = field(default_factory=dict)
    workers: Mapping[str, tuple[Array, Array, Array]] = field(default_factory=dict)
    """By worker or node: generations, environment steps per second, and idle shares."""
    target: float | None = None
    cut: bool = False
    """Whether members ran shorter episodes than evaluations."""

    def at(self, over: str, generations: Array) -> Array:
        """Where rows of these generations are on the axis."""
        mine = self.progress["generation"]
        if not len(mine):
            return np.full(len(generations), np.nan)
        places = np.clip(np.searchsorted(mine, generations), 0, len(mine) - 1)
        return np.asarray(self.progress[over][places])


def axis_of(runs: Sequence[Curves], over: str) -> tuple[str, str]:
    """The column of progress.csv that ``over`` means for these runs, and its name."""
    counted = all(np.isfinite(run.progress["env_steps"]).all() for run in runs)
    return X_AXES["episodes" if over == "steps" and not counted else over]


def shared_charts(runs: Sequence[Curves], over: str) -> list[Chart]:
    """Charts that hold every run: a curve each."""
    column, unit = axis_of(runs, over)
    charts = [_returns(runs[0], column, unit)] if len(runs) == 1 else _compared_returns(runs, column, unit)
    info = dict.fromkeys(name for run in runs for name in run.progress if name not in COLUMNS)
    titles = {
        "unperturbed_rank": "Rank of the unperturbed policy",
        "episode_length_mean": "Mean episode length, in steps",
        "sigma": "Sigma",
        "lr": "Step size (lr)",
        "update_ratio": "Update ratio",
        "steps_per_second": "Training steps per second",
        "nonfinite": "Episodes whose return was no usable number",
        **{name: _info_title(name) for name in info},
    }
    for name, title in titles.items():
        lines = [_line(run, run.name, name, column, style) for style, run in enumerate(runs)]
        chart = Chart(title, unit, lines, legend=False, note=_NOTES.get(name, ""))
        unneeded = name == "nonfinite" and not any(np.nansum(line.values) for line in lines)
        if not chart.empty() and not unneeded:
            charts.append(chart)
    return charts


def own_charts(run: Curves, over: str) -> list[Chart]:
    """Charts of one run alone: its population and its workers."""
    column, unit = axis_of([run], over)
    charts = []
    if run.population:
        at = run.at(column, run.population["generation"])
        low, lower, middle, upper, high = (run.population[f"return_q{n:02d}"] for n in (5, 25, 50, 75, 95))
        areas = [Area("5 % to 95 %", at, low, high), Area("25 % to 75 %", at, lower, upper)]
        lines = [Line("median", at, middle)]
        title = "Returns of the population, in quantiles"
        charts.append(Chart(title, unit, lines, areas, note=_cut([run])))
    idle = {name: (run.at(column, at), 100 * share) for name, (at, _, share) in run.workers.items()}
    rates = {name: (run.at(column, at), rate) for name, (at, rate, _) in run.workers.items()}
    if idle:
        charts.append(_spread("Time without work, in %", unit, idle, (0.0, 104.0)))
        if any(np.nansum(rate) for _, rate in rates.values()):
            charts.append(_spread("Steps per second, evaluations included", unit, rates, None))
    return charts


def _returns(run: Curves, column: str, unit: str) -> Chart:
    lines = [
        _line(run, "evaluation", "eval_return_mean", column, 0, strong=True),
        _line(run, "mean of the population", "return_mean", column, 1),
    ]
    return Chart("Return", unit, lines, levels=_targets([run]), note=_cut([run]))


def _compared_returns(runs: Sequence[Curves], column: str, unit: str) -> list[Chart]:
    evaluations = [_line(run, run.name, "eval_return_mean", column, n) for n, run in enumerate(runs)]
    means = [_line(run, run.name, "return_mean", column, n) for n, run in enumerate(runs)]
    title, levels = "Mean return of the population", _targets(runs)
    return [
        Chart("Return of evaluations", unit, evaluations, levels=levels, legend=False),
        Chart(title, unit, means, levels=levels, legend=False, note=_cut(runs)),
    ]


def _cut(runs: Sequence[Curves]) -> str:
    return _CUT if any(run.cut for run in runs) else ""


def _targets(runs: Sequence[Curves]) -> list[tuple[str, float]]:
    targets = {run.target for run in runs}
    target = targets.pop() if len(targets) == 1 else None
    return [] if target is None else [(f"target {short(target)}", target)]


def _line(run: Curves, label: str, name: str, column: str, style: int, *, strong: bool = False) -> Line:
    values = run.progress.get(name)
    if values is None:
        values = np.full(len(run.progress["generation"]), np.nan)
    return Line(label, np.asarray(run.progress[column]), values, style, strong)


def _spread(
    title: str, unit: str, of: Mapping[str, tuple[Array, Array]], ends: tuple[float, float] | None
) -> Chart:
    """A curve each of a few workers; of many, their median and their range."""
    if len(of) <= _MOST_LINES:
        lines = [Line(name, at, values, style) for style, (name, (at, values)) in enumerate(of.items())]
        return Chart(title, unit, lines, ends=ends)
    ats = np.unique(np.concatenate([at for at, _ in of.values()]))
    rows = np.stack([_last_known(at, values, ats) for at, values in of.values()])
    areas = [Area(f"all {len(of)} workers", ats, rows.min(axis=0), rows.max(axis=0), 2)]
    return Chart(title, unit, [Line("median worker", ats, np.median(rows, axis=0), 2)], areas, ends=ends)


def _last_known(at: Array, values: Array, ats: Array) -> Array:
    return np.asarray(values[np.clip(np.searchsorted(at, ats, side="right") - 1, 0, len(at) - 1)])


def _info_title(name: str) -> str:
    key = name.removesuffix("_mean")
    return f"{key.removeprefix('eval_')}, mean of evaluations" if key.startswith("eval_") else f"{key}, mean"
