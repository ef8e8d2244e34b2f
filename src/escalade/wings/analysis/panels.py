"""Charts of a report: from the tables of runs to curves."""

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
    "unperturbed_rank": "1: it beats every member",
    "update_ratio": "length of the update over that of the centre",
}
_NOVELTY = {
    "novelty_mean": "Novelty of the members, mean",
    "center_novelty": "Novelty of the centre",
    "fitness_weight": "Weight of fitness beside novelty",
}
_OF_WORKERS = {
    "idle_share": "Time without work, as a share",
    "env_steps_per_second": "Steps per second, evaluations included",
}
_CUT = "episodes of members are cut short, those of evaluations are whole"
CELLS = 20
"""Number of cells along each number of a behaviour; coverage counts those that held one."""


@dataclass(frozen=True)
class Archived:
    """The behaviours in an archive, the oldest first."""

    behaviours: NDArray[np.float32]
    """Shape (n, size)."""
    generations: NDArray[np.int64]
    """Generation of each behaviour, 1 for the first; shape (n,)."""
    centers: NDArray[np.int64]
    """Number of each behaviour's centre; shape (n,)."""

    def places(self) -> Array:
        """The first two numbers of each behaviour, shape (n, 2), or the only one, shape (n, 1)."""
        return self.behaviours[:, :2].astype(np.float64)


def shared_charts(runs: Mapping[str, Curves], over: str) -> list[Chart]:
    """Charts that hold every run: a curve each."""
    several = len(runs) > 1  # the lines of one run need no names
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
        "nonfinite": "Episodes whose return was no usable number",
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
    """Charts of one run alone: its population and its workers."""
    unit, charts = X_AXES[over][1], []
    if run.population:
        at = run.at(over, run.population["generation"])
        low, lower, middle, upper, high = (run.population[name] for name in QUANTILES)
        areas = [Area("5 % to 95 %", at, low, high), Area("25 % to 75 %", at, lower, upper)]
        title = "Returns of the population, in quantiles"
        charts.append(Chart(title, unit, [Line("median", at, middle)], areas, note=_cut([run])))
    generations = np.unique(workers.get("generation", ()))
    for column, title in _OF_WORKERS.items() if workers else ():
        of = [workers[column][workers["generation"] == one] for one in generations]
        low, middle, high = np.array([np.quantile(values, (0.0, 0.5, 1.0)) for values in of]).T
        at = run.at(over, generations)
        lines, areas = [Line("median of workers", at, middle)], [Area("all workers", at, low, high)]
        if np.nansum(high):
            charts.append(Chart(title, unit, lines, areas))
    return charts


def paths(archived: Archived) -> Chart:
    """Chart the way of each centre through the plane; a single number stands over generations."""
    alone = archived.behaviours.shape[1] == 1
    places = np.column_stack([archived.generations, archived.places()]) if alone else archived.places()
    across, upwards = ("generations", "behaviour") if alone else ("behaviour, first number", "second number")
    lines = []
    for number in np.unique(archived.centers).tolist():
        x, y = places[archived.centers == number].T
        lines.append(Line(f"centre {number}", x, y, number, strong=True))
    return Chart("Behaviours in the archive", across, lines, what=upwards)


def coverage(archived: Archived, run: Curves, over: str) -> Chart:
    """Chart how many cells of the plane held a behaviour; they divide what was reached by the end."""
    places = archived.places()
    low, high = places.min(axis=0), places.max(axis=0)
    cells = np.minimum((places - low) / np.where(high > low, high - low, 1.0) * CELLS, CELLS - 1).astype(int)
    _, first = np.unique(cells, axis=0, return_index=True)
    count = np.cumsum(np.isin(np.arange(len(cells)), first)).astype(np.float64)
    line = Line("cells", run.at(over, archived.generations.astype(np.float64)), count, steps=True)
    note = f"what is above in {CELLS} cells along each number"
    return Chart("Cells with a behaviour", X_AXES[over][1], [line], note=note)


def _cut(runs: Iterable[Curves]) -> str:
    return _CUT if any(run.cut for run in runs) else ""


def _info_title(name: str) -> str:
    key = name.removesuffix("_mean")
    return f"{key.removeprefix('eval_')}, mean of evaluations" if key.startswith("eval_") else f"{key}, mean"
