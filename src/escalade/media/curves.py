"""Learning curves, from progress.csv to a picture."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from escalade.errors import InputError
from escalade.recorders.progress import read_progress
from escalade.storage.files import AnyPath, write_bytes
from escalade.support.installing import install

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Columns = dict[str, list[float]]
"""A progress.csv: numbers by column."""

COLOURS = ("#2a6fbb", "#d1495b", "#3f8f5f", "#edae49", "#7d5ba6", "#66717e")
_FORMATS = (".png", ".pdf", ".svg")
_LARGEST = 1e30  # returns beyond this come from a simulation that diverged


def plotting_available() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def plot_runs(runs: Sequence[AnyPath], output: AnyPath, target: float | None = None, title: str = "") -> None:
    """Draw the learning curves of run folders into ``output`` (png, pdf or svg).

    For each run: the evaluations of the unperturbed policy, the population's mean, and its range from
    worst to best member, over training steps, or over evaluations of members where there is no
    environment. ``target`` is drawn as a line.

    Raises:
        InputError: matplotlib is missing, a folder is no run, or the output's ending is another.
        StorageFailure: the disk is full.
    """
    output = Path(output)
    check_output(output)
    progress = [(Path(run), read_progress(Path(run) / "progress.csv")) for run in runs]
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    counted = all(_all_numbers(columns["env_steps"]) for _, columns in progress)
    axis, unit = ("env_steps", "training steps") if counted else ("episodes", "evaluations of members")
    for number, (run, columns) in enumerate(progress):
        label = run.resolve().name if len(runs) > 1 else ""
        _draw(axes, columns, axis, COLOURS[number % len(COLOURS)], label)
    if target is not None and abs(target) <= _LARGEST:
        axes.axhline(target, color="#66717e", linestyle="--", linewidth=1, label=f"target {target:g}")
    finish(axes, unit, title)
    save_figure(figure, output)


def finish(axes: Axes, unit: str, title: str) -> None:
    """Name the axes of a picture of returns, and draw its legend."""
    axes.set_xlabel(unit)
    axes.set_ylabel("return")
    axes.set_title(title)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, loc="best")


def save_figure(figure: Figure, output: Path) -> None:
    """Write a picture, whole or not at all."""
    picture = io.BytesIO()
    figure.savefig(picture, format=output.suffix.lower()[1:], dpi=120)
    write_bytes(output, picture.getvalue())


def check_output(output: Path) -> None:
    """Refuse what a picture cannot be written to.

    Raises:
        InputError: matplotlib or the folder is missing, or the ending is another than png, pdf or svg.
    """
    if not plotting_available():
        raise InputError(f"plots need matplotlib: {install('plot')}")
    if output.suffix.lower() not in _FORMATS:
        raise InputError(f"`output` {output} must end in {', '.join(_FORMATS)}")
    if not output.parent.is_dir():
        raise InputError(f"`output` {output}: there is no folder {output.parent}")


def _draw(axes: Axes, columns: Columns, axis: str, colour: str, run: str) -> None:
    x, worst, best = (_drawable(columns[name]) for name in (axis, "return_min", "return_max"))
    axes.fill_between(x, worst, best, color=colour, alpha=0.13, linewidth=0)
    mean = _drawable(columns["return_mean"])
    axes.plot(x, mean, color=colour, alpha=0.6, linewidth=1, label=_label(run, "population mean"))
    evaluated = [
        (at, value)
        for at, value in zip(x, _drawable(columns["eval_return_mean"]), strict=True)
        if not math.isnan(value)
    ]
    if evaluated:
        at, values = zip(*evaluated, strict=True)
        axes.plot(at, values, color=colour, linewidth=2, label=_label(run, "evaluation"))


def _all_numbers(column: Sequence[float]) -> bool:
    return not any(map(math.isnan, column))


def _drawable(column: Sequence[float]) -> list[float]:
    """The numbers, with NaN, which leaves a gap, for those that would stretch the axes beyond all use."""
    return [value if abs(value) <= _LARGEST else math.nan for value in column]


def _label(run: str, what: str) -> str:
    return f"{run}: {what}" if run else what
