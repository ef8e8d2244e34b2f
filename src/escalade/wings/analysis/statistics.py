"""Statistics of a few runs on several tasks: Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of
the Statistical Precipice" (arXiv 2108.13264).

A method's ``scores`` are one array a task, whose last axis is that task's runs: x_{m,n} of the paper, of M
tasks with N_m runs each, which need not be as many. Further axes may stand in front, such as resamples.
Their library rliable has the same formulas. Its 1.2.0 fails on import beside pandas 3, and needs 15 packages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_RESAMPLES = 2000
_AT_ONCE = 50  # resamples whose numbers are in memory together
_LEVEL = 95.0


def interquartile_mean(values: Array, axis: int = 0) -> Array:
    """Mean of the middle half: a quarter of the values, rounded down, is left out at either end."""
    ordered = np.sort(values, axis=axis)
    count = ordered.shape[axis]
    kept = np.arange(count // 4, count - count // 4)
    return np.asarray(ordered.take(kept, axis=axis).mean(axis=axis))


def interquartile_score(scores: Sequence[Array]) -> Array:
    """Interquartile mean of all runs on all tasks together (section 4.3); each run counts once.

    Returns:
        Shape (...), without the axis of runs.
    """
    return interquartile_mean(np.concatenate(scores, axis=-1), axis=-1)


def performance_profile(scores: Sequence[Array], thresholds: Array) -> Array:
    """Share of runs that score above each threshold (section 4.2).

    F(tau) = 1/M sum_m 1/N_m sum_n [x_{m,n} > tau]: every task counts the same.

    Returns:
        Shape (..., thresholds).
    """
    above = [(runs[..., :, None] > thresholds).mean(axis=-2) for runs in scores]
    return np.asarray(np.mean(above, axis=0))


def probability_of_improvement(first: Sequence[Array], second: Sequence[Array]) -> Array:
    """Probability that a run of ``first`` beats one of ``second`` on a task drawn at random (section 4.3).

    P(X > Y) = 1/M sum_m 1/(N_m K_m) sum_i sum_j S(x_{m,i}, y_{m,j}), where S is 1 if x is larger, and 1/2 if
    they are equal: the statistic of Mann and Whitney, over its largest value.

    Returns:
        Shape (...), without the axis of runs.
    """
    tasks = []
    for runs, others in zip(first, second, strict=True):
        x, y = runs[..., :, None], others[..., None, :]
        tasks.append(((x > y) + 0.5 * (x == y)).mean(axis=(-2, -1)))
    return np.asarray(np.mean(tasks, axis=0))


def interval(statistic: Callable[[list[Array]], Array], samples: Sequence[Array]) -> tuple[Array, Array]:
    """Ends of the 95 % interval of a statistic: the stratified percentile bootstrap's (section 4.1).

    The same samples give the same interval.

    Args:
        statistic: takes resamples of all ``samples``, each with an axis of resamples in front, and gives one
            value, or one array, a resample.
        samples: arrays whose first axis is runs. Runs are drawn whole, with replacement, from each array by
            itself, as many as it has.
    """
    chance, found = np.random.default_rng(0), []
    for _ in range(_RESAMPLES // _AT_ONCE):
        drawn = [of[chance.integers(len(of), size=(_AT_ONCE, len(of)))] for of in samples]
        found.append(statistic(drawn))
    beyond = (100 - _LEVEL) / 2
    low, high = np.percentile(np.concatenate(found), [beyond, 100 - beyond], axis=0)
    return low, high


@dataclass(frozen=True)
class Estimate:
    """A statistic, and the ends of its 95 % interval, which are None if no sample has two runs."""

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
