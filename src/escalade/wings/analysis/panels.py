"""Charts of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from escalade.media.charts import Area, Chart, Line
from escalade.media.curves import X_AXES, Curves, learning_curve
from escalade.media.figure import Array
from escalade.recorders import COLUMNS
from escalade.recorders.row import QUANTILES
from escalade.strategies.novelty import CENTER

_NOTES = {
    "unperturbed_rank": "1: the center beats every member",
    "update_ratio": "norm of the update divided by the norm of the center",
}
_NOVELTY = {
    "novelty_mean": "Novelty of the members, mean",
    "center_novelty": "Novelty of the center",
    "fitness_weight": "Weight of fitness against novelty",
}
_WORKER_TITLES = {
    "idle_share": "Idle share of the time",
    "env_steps_per_second": "Steps per second, including evaluations",
}
_CUT = "episodes of members are cut short; evaluation episodes are complete"
CELLS = 20
"""Number of cells per dimension of a behavior, for coverage."""


@dataclass(frozen=True)
class Archived:
    """Behaviors in a novelty archive, oldest first."""

    behaviors: NDArray[np.float32]
    """Shape (n, size)."""
    generations: NDArray[np.int64]
    """Generation of each behavior, starting at 1; shape (n,)."""
    centers: NDArray[np.int64]
    """Index of each behavior's center; shape (n,)."""

    def positions(self) -> Array:
        """Return the first two dimensions of each behavior, shape (n, 2), or the only one, shape (n, 1)."""
        return self.behaviors[:, :2].astype(np.float64)


def shared_charts(runs: Mapping[str, Curves], over: str) -> list[Chart]:
    """Return the charts with one curve per run."""
    several = len(runs) > 1  # a single run needs no legend
    info = dict.fromkeys(name for run in runs.values() for name in run.progress if name not in COLUMNS)
    returns = {"eval_return_mean": "Return of evaluations", "return_mean": "Mean return of the population"}
    titles = {
        **(returns if several else {}),
        "unperturbed_rank": "Rank of the unperturbed policy",
        "episode_length_mean": "Mean episode length, in steps",
        "sigma": "Sigma",
        "lr": "Step size (lr)",
        "update_ratio": "Update ratio",
        "steps_per_second": "Training steps per second",
        "nonfinite": "Episodes with a return that is not finite",
        **_NOVELTY,
        **{name: _info_title(name) for name in info if name not in (*_NOVELTY, CENTER)},
    }
    charts = [] if several else [learning_curve(run, over) for run in runs.values()]
    targets = {run.target for run in runs.values()}
    for name, title in titles.items():
        lines = [
            run.line(label if several else "", name, over, style)
            for style, (label, run) in enumerate(runs.items())
        ]
        note = _cut(runs.values()) if name == "return_mean" else _NOTES.get(name, "")
        target = next(iter(targets)) if name in returns and len(targets) == 1 else None
        chart = Chart(title, X_AXES[over][1], lines, target=target, note=note)
        unneeded = name == "nonfinite" and not any(np.nansum(line.values) for line in lines)
        if name in returns or not (chart.empty() or unneeded):
            charts.append(chart)
    return charts


def own_charts(run: Curves, workers: Mapping[str, Array], over: str) -> list[Chart]:
    """Return the charts of a single run: its population and its workers."""
    unit, charts = X_AXES[over][1], []
    if run.population:
        at = run.at(over, run.population["generation"])
        low, lower, middle, upper, high = (run.population[name] for name in QUANTILES)
        areas = [Area("5 % to 95 %", at, low, high), Area("25 % to 75 %", at, lower, upper)]
        title = "Returns of the population, in quantiles"
        charts.append(Chart(title, unit, [Line("median", at, middle)], areas, note=_cut([run])))
    generations = np.unique(workers.get("generation", ()))
    for column, title in _WORKER_TITLES.items() if workers else ():
        of = [workers[column][workers["generation"] == one] for one in generations]
        low, middle, high = np.array([np.quantile(values, (0.0, 0.5, 1.0)) for values in of]).T
        at = run.at(over, generations)
        lines, areas = [Line("median of workers", at, middle)], [Area("all workers", at, low, high)]
        if np.nansum(high):
            charts.append(Chart(title, unit, lines, areas))
    return charts


def paths(archived: Archived) -> Chart:
    """Return a chart of each center's path in behavior space; over generations if that has one dimension."""
    alone = archived.behaviors.shape[1] == 1
    positions = archived.positions()
    if alone:
        positions = np.column_stack([archived.generations, positions])
    labels = ("generations", "behavior") if alone else ("behavior, first dimension", "second dimension")
    lines = []
    for number in np.unique(archived.centers).tolist():
        x, y = positions[archived.centers == number].T
        lines.append(Line(f"center {number}", x, y, number, strong=True))
    return Chart("Behaviors in the archive", labels[0], lines, what=labels[1])


def coverage(archived: Archived, run: Curves, over: str) -> Chart:
    """Return a chart of the number of visited cells. The grid spans the final range of behaviors."""
    positions = archived.positions()
    low, high = positions.min(axis=0), positions.max(axis=0)
    scaled = (positions - low) / np.where(high > low, high - low, 1.0) * CELLS
    cells = np.minimum(scaled, CELLS - 1).astype(int)
    _, first = np.unique(cells, axis=0, return_index=True)
    count = np.cumsum(np.isin(np.arange(len(cells)), first)).astype(np.float64)
    line = Line("cells", run.at(over, archived.generations.astype(np.float64)), count, steps=True)
    note = f"the range of the chart above, divided into {CELLS} cells per dimension"
    return Chart("Cells with a behavior", X_AXES[over][1], [line], note=note)


def _cut(runs: Iterable[Curves]) -> str:
    return _CUT if any(run.cut for run in runs) else ""


def _info_title(name: str) -> str:
    key = name.removesuffix("_mean")
    return f"{key.removeprefix('eval_')}, mean of evaluations" if key.startswith("eval_") else f"{key}, mean"
