"""Several runs as one curve: the interquartile mean, and a band of confidence about it.

Agarwal et al. 2021 (arXiv 2108.13264), whose library rliable does the same: with a handful of runs a mean
follows its outliers, and a median one run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from escalade.errors import InputError
from escalade.media.curves import COLOURS, check_output, finish, save_figure
from escalade.recorders.progress import read_progress
from escalade.storage.files import AnyPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

AXES = {"steps": ("env_steps", "training steps"), "seconds": ("seconds", "seconds of training")}
_POINTS = 200
_RESAMPLES = 2000
_AT_ONCE = 50  # resamples whose numbers are in memory together
_LEVEL = 95.0


@dataclass(frozen=True)
class Curve:
    """One run's evaluations: where they were, shape (n,), and their mean returns, shape (n,)."""

    at: Array
    returns: Array
    solved: bool
    """Whether the run ended because it met its target: its last evaluation then stands."""


@dataclass(frozen=True)
class Band:
    """The curve of several runs, at points ``at``; all shapes are (points,)."""

    at: Array
    middle: Array
    """Interquartile mean of the runs' evaluations."""
    low: Array
    high: Array
    """The ends of the 95 % interval."""
    runs: int


def read_curve(run: AnyPath, over: str, solved: bool) -> Curve:
    """A run's evaluations, over ``steps`` or ``seconds``.

    Raises:
        InputError: the folder is no run, or has no evaluation that can be drawn.
    """
    columns = read_progress(Path(run) / "progress.csv")
    at, returns = (np.array(columns[name]) for name in (AXES[over][0], "eval_return_mean"))
    usable = np.isfinite(at) & np.isfinite(returns)
    if not usable.any():
        raise InputError(f"run {run} has no evaluation over {over}: there is no curve to draw")
    return Curve(at[usable], returns[usable], solved)


def interquartile_mean(values: Array, axis: int = 0) -> Array:
    """Mean of the middle half: a quarter of the values, rounded down, is left out at either end."""
    ordered = np.sort(values, axis=axis)
    count = ordered.shape[axis]
    kept = np.arange(count // 4, count - count // 4)
    return np.asarray(ordered.take(kept, axis=axis).mean(axis=axis))


def band(curves: Sequence[Curve], seed: int = 0) -> Band:
    """One curve of several runs of the same task and settings.

    Between its evaluations a run counts with the last one. The band begins where all runs have one, and ends
    with the first run that ends unsolved, or the last one that ends. Its interval is the percentile
    bootstrap's: runs are drawn whole, with replacement, among those of their own task (which makes it
    stratified).
    """
    first = max(float(curve.at[0]) for curve in curves)
    ends = [float(curve.at[-1]) for curve in curves]
    unsolved = [end for curve, end in zip(curves, ends, strict=True) if not curve.solved]
    at = np.linspace(first, max(first, min(unsolved, default=max(ends))), _POINTS)
    values = np.stack([_as_of(curve, at) for curve in curves])
    low, high = _interval(values, np.random.default_rng(seed))
    return Band(at, interquartile_mean(values), low, high, len(curves))


def draw_bands(panels: Mapping[str, Mapping[str, Band]], output: AnyPath, over: str = "steps") -> None:
    """Draw a panel for each task, with a band for each of its settings, into a png, pdf or svg file.

    Raises:
        InputError: matplotlib is missing, or the output's ending is another.
        StorageFailure: the disk is full.
    """
    output = Path(output)
    check_output(output)
    from matplotlib.figure import Figure

    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(max(8.0, 5.0 * columns), 4.5 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for place, (task, bands) in zip(axes, panels.items(), strict=False):
        for number, (label, of) in enumerate(bands.items()):
            _draw(place, of, label, COLOURS[number % len(COLOURS)])
        place.set_xlim(left=0)
        finish(place, AXES[over][1], task)
    for place in axes[len(panels) :]:
        place.set_visible(False)
    save_figure(figure, output)


def _as_of(curve: Curve, at: Array) -> Array:
    """The run's last evaluation at or before each point."""
    return curve.returns[np.searchsorted(curve.at, at, side="right") - 1]


def _interval(values: Array, chance: np.random.Generator) -> tuple[Array, Array]:
    """Ends of the interval at each point, of runs' values, shape (runs, points)."""
    runs, found = len(values), []
    for _ in range(_RESAMPLES // _AT_ONCE):
        drawn = values[chance.integers(runs, size=(_AT_ONCE, runs))]
        found.append(interquartile_mean(drawn, axis=1))
    beyond = (100 - _LEVEL) / 2
    low, high = np.percentile(np.concatenate(found), [beyond, 100 - beyond], axis=0)
    return low, high


def _draw(axes: Axes, of: Band, label: str, colour: str) -> None:
    axes.fill_between(of.at, of.low, of.high, color=colour, alpha=0.2, linewidth=0)
    runs = f"{of.runs} run{'s' * (of.runs > 1)}"
    axes.plot(of.at, of.middle, color=colour, linewidth=2, label=f"{label} ({runs})")
