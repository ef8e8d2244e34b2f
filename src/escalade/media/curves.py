"""Learning curve of a run, from its tables to a chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from escalade.media.charts import Area, Chart, Line, drawable, write_charts
from escalade.media.figure import Array
from escalade.recorders import columns_of, read_table
from escalade.recorders.row import QUANTILES
from escalade.storage.files import AnyPath
from escalade.storage.run_folder import RunFolder
from escalade.support.numbers import LARGEST

X_AXES = {
    "steps": ("env_steps", "training steps"),
    "seconds": ("seconds", "seconds of training"),
    "generations": ("generation", "generations"),
    "episodes": ("episodes", "evaluations of members"),
}
"""Choices of the x axis: column of progress.csv, and label."""


@dataclass(frozen=True)
class Curves:
    """Tables of a run. Columns are arrays with one number per row, NaN for an empty cell."""

    progress: Mapping[str, Array]
    summary: Mapping[str, Any] = field(default_factory=dict)
    population: Mapping[str, Array] = field(default_factory=dict)
    """Columns of population.csv; empty if the run has no such table."""
    target: float | None = None
    cut: bool = False
    """True if members ran shorter episodes than evaluations."""

    def at(self, over: str, generations: Array) -> Array:
        """Return the positions of generations on the axis ``over``, a key of :data:`X_AXES`."""
        mine, places = self.progress["generation"], self.progress[X_AXES[over][0]]
        if not len(mine):
            return np.full(len(generations), np.nan)
        return np.asarray(places[np.clip(np.searchsorted(mine, generations), 0, len(mine) - 1)])

    def line(self, label: str, column: str, over: str, style: int, smooth: int = 1, **looks: Any) -> Line:
        """Return a column of progress.csv over an axis. Evaluations include that of the final policy."""
        if column == "eval_return_mean":
            at, values = evaluations(self, over)
        else:
            at = self.progress[X_AXES[over][0]]
            values = drawable(self.progress.get(column, np.full(len(at), np.nan)))
        return Line(label, at, smoothed(values, smooth), style, **looks)


def read_curves(run: AnyPath, target: float | None = None, *, cut: bool = False) -> Curves:
    """Read the tables of a run folder.

    Raises:
        InputError: it is not a run folder.
    """
    folder = RunFolder(run)
    progress = {key: np.array(values) for key, values in columns_of(folder).items()}
    population = {key: numbers_of(cells) for key, cells in table_of(folder.population).items()}
    return Curves(progress, folder.read_summary(), population, target, cut)


def table_of(path: Path) -> dict[str, list[str]]:
    """Return the columns of a table as text. Empty if the table does not exist."""
    return read_table(path) if path.exists() else {}


def numbers_of(cells: Sequence[str]) -> Array:
    """Return a column of a table as numbers, NaN for an empty cell."""
    return np.array([float(cell or "nan") for cell in cells])


def axis_of(runs: Iterable[Mapping[str, Any]], over: str) -> str:
    """Return ``over``, or ``episodes`` instead of ``steps`` if a run has no environment."""
    counted = not any(np.isnan(columns["env_steps"]).any() for columns in runs)
    return "episodes" if over == "steps" and not counted else over


def plot_run(
    run: AnyPath, output: AnyPath, target: float | None = None, title: str = "", *, cut: bool = False
) -> None:
    """Draw the learning curve of a run to ``output`` (png, pdf or svg).

    It shows the evaluations of the unperturbed policy, the population's mean, and a band of its members from
    the 5th to the 95th percentile. Without population.csv, the band is from the worst to the best member.

    Args:
        run: run folder.
        output: file to write.
        target: target return, drawn as a line.
        title: title of the plot.
        cut: whether members ran shorter episodes than evaluations, noted in the legend.

    Raises:
        InputError: matplotlib is missing, ``run`` is not a run folder, or the extension is not supported.
        StorageFailure: the disk is full.
    """
    chart = learning_curve(read_curves(run, target=target, cut=cut), "steps")
    write_charts([replace(chart, title=title)], output)


def learning_curve(run: Curves, over: str, smooth: int = 1) -> Chart:
    """Return a chart of the returns of evaluations and members of a run."""
    over = axis_of([run.progress], over)
    at = run.progress[X_AXES[over][0]]
    if len(run.population.get("generation", ())):
        named = "members, 5th to 95th percentile"
        low, high = (_by_generation(run, name) for name in (QUANTILES[0], QUANTILES[-1]))
    else:
        named = "members, worst to best"
        low, high = run.progress["return_min"], run.progress["return_max"]
    low, high = (smoothed(drawable(values), smooth) for values in (low, high))
    mean = "population mean" + ", episodes cut short" * run.cut
    lines = [
        run.line(mean, "return_mean", over, 1, smooth),
        run.line("evaluation", "eval_return_mean", over, 0, smooth, strong=True),
    ]
    members = Area(named, at, low, high, 1, outer=True)
    areas = [members] * bool(len(at))
    return Chart("Return", X_AXES[over][1], lines, areas, run.target, what="return")


def _by_generation(run: Curves, name: str) -> Array:
    """Return a column of population.csv for the rows of progress.csv, NaN for missing rows."""
    known = dict(zip(run.population["generation"].tolist(), run.population[name].tolist(), strict=True))
    return np.array([known.get(at, np.nan) for at in run.progress["generation"].tolist()])


def smoothed(values: Array, count: int) -> Array:
    """Return the mean of each value and up to ``count - 1`` values before it.

    Args:
        values: shape (n,). NaN values are left out of means and stay NaN.
        count: length of the window; 1 changes nothing.
    """
    if count == 1 or not len(values):
        return values
    known, window = np.isfinite(values), np.ones(min(count, len(values)))
    # Sums of windows. Differences of running sums would lose small values after a large one.
    sums, counts = (
        np.convolve(part, window)[: len(values)] for part in (np.where(known, values, 0.0), known)
    )
    return np.where(known, sums / np.maximum(counts, 1), np.nan)


def evaluations(run: Curves, over: str) -> tuple[Array, Array]:
    """Return positions on the axis and mean returns of a run's evaluations, both of shape (n,).

    The last one is the evaluation of the final policy, which is only in summary.json.
    """
    at, found = run.progress[X_AXES[over][0]], drawable(run.progress["eval_return_mean"])
    known = np.isfinite(at) & np.isfinite(found)
    at, found = at[known], found[known]
    name = "generations" if over == "generations" else X_AXES[over][0]
    end, value = run.summary.get(name), run.summary.get("eval_return_mean")
    if not len(at) or end is None or at[-1] > end or value is None or not abs(value) <= LARGEST:
        return at, found
    if run.summary.get("updates_since_evaluation"):  # the summary repeats the evaluation of a row
        return at, found
    earlier = at < end
    return np.append(at[earlier], end), np.append(found[earlier], value)
