"""Several runs as one curve: the interquartile mean, and a band of confidence about it.

Agarwal et al. 2021 (arXiv 2108.13264), whose library rliable does the same: with a handful of runs a mean
follows its outliers, and a median one run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from escalade.errors import InputError
from escalade.media.curves import read_curves, smoothed
from escalade.storage.files import AnyPath
from escalade.wings.analysis.statistics import interquartile_mean, interval

Array = NDArray[np.float64]

_POINTS = 200


@dataclass(frozen=True)
class Curve:
    """One run's evaluations: where they were, shape (n,), and their mean returns, shape (n,)."""

    at: Array
    returns: Array
    solved: bool
    """True where the run ended because it met its target: its last evaluation then stands."""


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


def read_curve(
    run: AnyPath, over: str, solved: bool, *, smooth: int = 1, of: str = "eval_return_mean"
) -> Curve:
    """A run's evaluations.

    Args:
        run: its folder.
        over: a name of :data:`escalade.media.curves.X_AXES`.
        solved: whether it met its target.
        smooth: each point is the mean of this many in a row, the last of which is its own.
        of: the column of progress.csv that is drawn.

    Raises:
        InputError: the folder is no run, or has no evaluation that can be drawn.
    """
    at, returns = read_curves(run).line("", of, over, 0).points()
    if not len(at):
        raise InputError(f"run {os.fspath(run)} has no evaluation over {over}: there is no curve to draw")
    return Curve(at, smoothed(returns, smooth), solved)


def band(curves: Sequence[Curve]) -> Band:
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
    low, high = interval(lambda drawn: interquartile_mean(drawn[0], axis=1), [values])
    return Band(at, interquartile_mean(values), low, high, len(curves))


def _as_of(curve: Curve, at: Array) -> Array:
    """The run's last evaluation at or before each point."""
    return curve.returns[np.searchsorted(curve.at, at, side="right") - 1]
