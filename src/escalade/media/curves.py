"""The learning curve of one run, from progress.csv to a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from escalade.errors import InputError
from escalade.media.figure import (
    COLOURS,
    DASHES,
    GREY,
    Array,
    check_output,
    finish,
    fit_returns,
    save_figure,
    widened,
)
from escalade.media.smoothing import smoothed
from escalade.recorders import read_progress, read_table
from escalade.storage.files import AnyPath
from escalade.storage.run_folder import RunFolder
from escalade.support.numbers import LARGEST

if TYPE_CHECKING:
    from matplotlib.axes import Axes

X_AXES = {
    "steps": ("env_steps", "training steps"),
    "seconds": ("seconds", "seconds of training"),
    "generations": ("generation", "generations"),
    "episodes": ("episodes", "evaluations of members"),
}
"""What curves are drawn over: a column of progress.csv, and its name in pictures."""

_EVALUATION: dict[str, Any] = {
    "label": "evaluation",
    "color": COLOURS[0],
    "linestyle": "-",
    "linewidth": 2,
    "markersize": 4,
}
_QUANTILES = ("return_q05", "return_q95")


def plot_run(
    run: AnyPath,
    output: AnyPath,
    target: float | None = None,
    title: str = "",
    *,
    x: str = "steps",
    smooth: int = 1,
    cut: bool = False,
) -> None:
    """Draw the learning curve of a run folder into ``output`` (png, pdf or svg).

    It shows the evaluations of the unperturbed policy, the population's mean, and a band of its members:
    from the 5th to the 95th percentile, or from the worst to the best of them where there is no
    population.csv to read percentiles from.

    Args:
        run: its folder.
        output: the picture.
        target: drawn as a line.
        title: of the picture.
        x: a name of :data:`X_AXES`; ``steps`` is ``episodes`` where there is no environment.
        smooth: each point is the mean of this many in a row, the last of which is its own.
        cut: whether members ran shorter episodes than evaluations, which the legend then says.

    Raises:
        InputError: matplotlib is missing, the folder is no run, or the output's ending is another.
        StorageFailure: the disk is full.
    """
    output = Path(output)
    check_output(output)
    columns = {name: np.array(values) for name, values in read_progress(Path(run) / "progress.csv").items()}
    members = _members(Path(run) / "population.csv", columns)
    from matplotlib.figure import Figure

    x = "episodes" if x == "steps" and np.isnan(columns["env_steps"]).any() else x
    column, unit = X_AXES[x]
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    drawn, around = _draw_members(axes, columns, members, columns[column], smooth, cut)
    at, found = evaluations(run, columns, x)
    if len(at):
        drawn.append(smoothed(found, smooth))
        axes.plot(at, drawn[-1], marker="o" if len(at) <= 25 else "", **_EVALUATION)
    shown = []
    if target is not None and abs(target) <= LARGEST:
        axes.axhline(target, color=GREY, linestyle="--", linewidth=1, label=f"target {target:g}")
        shown = [target]
    fit_returns(axes, drawn, shown, around=around)
    finish(axes, unit, title)
    labels = axes.get_legend_handles_labels()[1]
    figure.set_size_inches(7.0 + widened(labels), 4.5)
    save_figure(figure, output)


def evaluations(run: AnyPath, columns: Mapping[str, Array], over: str) -> tuple[Array, Array]:
    """Where a run was evaluated, shape (n,), and what the evaluations gave, shape (n,).

    The evaluation of the policy that the run ended with is in summary.json alone; it is the last one here.

    Args:
        run: its folder.
        columns: of its progress.csv.
        over: a name of :data:`X_AXES`.
    """
    at, found = columns[X_AXES[over][0]], drawable(columns["eval_return_mean"])
    known = np.isfinite(at) & np.isfinite(found)
    at, found = at[known], found[known]
    summary = RunFolder(run).read_summary()
    name = "generations" if over == "generations" else X_AXES[over][0]
    end, value = (_number(summary.get(key)) for key in (name, "eval_return_mean"))
    if not len(at) or not at[-1] <= end or not abs(value) <= LARGEST:
        return at, found
    earlier = at < end
    return np.append(at[earlier], end), np.append(found[earlier], value)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")


def drawable(values: Array) -> Array:
    """The numbers, with NaN, which leaves a gap, for those that would stretch the axes beyond all use."""
    return np.where(np.abs(values) <= LARGEST, values, np.nan)


def _members(path: Path, columns: dict[str, Array]) -> tuple[str, Array, Array]:
    """What the band of members shows, and its ends."""
    found = _percentiles(path)
    if not found:
        return "members, worst to best", columns["return_min"], columns["return_max"]
    missing = (float("nan"), float("nan"))
    low, high = np.array([found.get(at, missing) for at in columns["generation"]]).reshape(-1, 2).T
    return "members, 5th to 95th percentile", low, high


def _percentiles(path: Path) -> dict[float, tuple[float, float]]:
    """Those of each generation in a population.csv; none where there is no such file, or a damaged one."""
    try:
        table = read_table(path)
        at, low, high = ([float(cell) for cell in table[name]] for name in ("generation", *_QUANTILES))
    except (InputError, KeyError, ValueError):
        return {}
    return dict(zip(at, zip(low, high, strict=True), strict=True))


def _draw_members(
    axes: Axes,
    columns: dict[str, Array],
    members: tuple[str, Array, Array],
    at: Array,
    smooth: int,
    cut: bool,
) -> tuple[list[Array], list[Array]]:
    """Draw the mean of the members, which is returned, and the band of them, whose ends are."""
    named, *ends = members
    low, high = (smoothed(drawable(values), smooth) for values in ends)
    axes.fill_between(at, low, high, color=COLOURS[1], alpha=0.15, linewidth=0, label=named)
    mean = smoothed(drawable(columns["return_mean"]), smooth)
    whole = "population mean" + ", episodes cut short" * cut
    axes.plot(at, mean, color=COLOURS[1], linewidth=1, linestyle=DASHES[1], label=whole)
    return [mean], [low, high]
