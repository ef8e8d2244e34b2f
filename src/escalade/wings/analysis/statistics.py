"""Statistics of a few runs on several tasks, after Agarwal et al. 2021 (arXiv 2108.13264).

The paper is "Deep Reinforcement Learning at the Edge of the Statistical Precipice". The ``scores`` of a
method are one array per task with runs on the last axis: x_{m,n} of the paper, for M tasks with N_m runs
each. Tasks may have different numbers of runs. Leading axes, such as resamples, are allowed. The authors'
library rliable implements the same formulas, but version 1.2.0 fails on import with pandas 3 and needs 15
packages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_RESAMPLES = 2000
_AT_ONCE = 50  # resamples in memory at a time
_LEVEL = 95.0


def interquartile_mean(values: Array, axis: int = 0) -> Array:
    """Return the mean of the middle half: a quarter of the values, rounded down, is dropped at each end."""
    ordered = np.sort(values, axis=axis)
    count = ordered.shape[axis]
    kept = np.arange(count // 4, count - count // 4)
    return np.asarray(ordered.take(kept, axis=axis).mean(axis=axis))


def interquartile_score(scores: Sequence[Array]) -> Array:
    """Return the interquartile mean over all runs on all tasks (section 4.3).

    Runs have equal weight.

    Returns:
        Shape (...), without the axis of runs.
    """
    return interquartile_mean(np.concatenate(scores, axis=-1), axis=-1)


def performance_profile(scores: Sequence[Array], thresholds: Array) -> Array:
    """Return the share of runs that score above each threshold (section 4.2).

    F(tau) = 1/M sum_m 1/N_m sum_n [x_{m,n} > tau]: tasks have equal weight.

    Returns:
        Shape (..., thresholds).
    """
    above = [(runs[..., :, None] > thresholds).mean(axis=-2) for runs in scores]
    return np.asarray(np.mean(above, axis=0))


def probability_of_improvement(first: Sequence[Array], second: Sequence[Array]) -> Array:
    """Return the probability that a run of ``first`` beats one of ``second`` on a random task (section 4.3).

    P(X > Y) = 1/M sum_m 1/(N_m K_m) sum_i sum_j S(x_{m,i}, y_{m,j}), with S = 1 if x is larger and S = 1/2 if
    they are equal. This is the Mann-Whitney statistic, divided by its maximum.

    Returns:
        Shape (...), without the axis of runs.
    """
    tasks = []
    for runs, others in zip(first, second, strict=True):
        x, y = runs[..., :, None], others[..., None, :]
        tasks.append(((x > y) + 0.5 * (x == y)).mean(axis=(-2, -1)))
    return np.asarray(np.mean(tasks, axis=0))


def interval(statistic: Callable[[list[Array]], Array], samples: Sequence[Array]) -> tuple[Array, Array]:
    """Return the bounds of a statistic's 95 % interval, by stratified percentile bootstrap (section 4.1).

    The same samples give the same interval.

    Args:
        statistic: function of resamples of all ``samples``, each with a leading axis of resamples. Returns
            one value, or one array, per resample.
        samples: arrays whose first axis is runs. Each array is resampled separately: whole runs are drawn
            with replacement, as many as it has.
    """
    rng, found = np.random.default_rng(0), []
    for _ in range(_RESAMPLES // _AT_ONCE):
        drawn = [of[rng.integers(len(of), size=(_AT_ONCE, len(of)))] for of in samples]
        found.append(statistic(drawn))
    beyond = (100 - _LEVEL) / 2
    low, high = np.percentile(np.concatenate(found), [beyond, 100 - beyond], axis=0)
    return low, high


@dataclass(frozen=True)
class Estimate:
    """A statistic and the bounds of its 95 % interval, which are None if no sample has two runs."""

    value: float
    low: float | None
    high: float | None


def estimate(statistic: Callable[[list[Array]], Array], samples: list[Array]) -> Estimate:
    """Return a statistic with its :func:`interval`."""
    value = float(statistic(samples))
    if all(len(runs) < 2 for runs in samples):
        return Estimate(value, None, None)
    low, high = interval(statistic, samples)
    return Estimate(value, float(low), float(high))
