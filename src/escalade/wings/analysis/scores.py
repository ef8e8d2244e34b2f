"""Normalized scores of methods across several tasks, and their statistics after Agarwal et al. 2021."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from escalade.errors import InputError
from escalade.wings.analysis.bands import Band
from escalade.wings.analysis.statistics import (
    Estimate,
    estimate,
    interquartile_score,
    interval,
    performance_profile,
    probability_of_improvement,
)

Array = NDArray[np.float64]
Bounds = Mapping[str, tuple[float, float]]
"""Returns that score 0 and 1, by task."""

_THRESHOLDS = 101


@dataclass(frozen=True)
class MethodScore:
    """Scores of one method on all tasks."""

    label: str
    runs: int
    """Number of runs on all tasks."""
    score: Estimate
    """Interquartile mean of the scores of all runs."""
    profile: Band
    """Share of runs that score above each threshold in ``profile.at``. Tasks have equal weight."""


@dataclass(frozen=True)
class Improvement:
    """Probability that a run of ``first`` beats a run of ``second`` on a random task."""

    first: str
    second: str
    probability: Estimate


@dataclass(frozen=True)
class Scores:
    """Result of :func:`score`."""

    bounds: dict[str, tuple[float, float]]
    methods: tuple[MethodScore, ...]
    improvements: tuple[Improvement, ...]
    left_out: dict[str, tuple[str, ...]]
    """Methods without runs on some tasks, and these tasks."""


def score(returns: Mapping[str, Mapping[str, Sequence[float]]], bounds: Bounds) -> Scores:
    """Score methods on several tasks: ``(return - low) / (high - low)``, with the bounds of each task.

    Args:
        returns: returns of runs, by method and task. A method without runs on some task is left out. A run
            with the return NaN, such as one that diverged, scores 0, or the lowest score if that is below 0.
        bounds: ``(low, high)`` of each task. If smaller returns are better, ``low`` is the larger number.

    Raises:
        InputError: bounds are missing, equal or not finite, or no method has runs on all tasks.
    """
    tasks = list(dict.fromkeys(task for of in returns.values() for task in of))
    bounds = _checked(bounds, tasks)
    missing = {label: tuple(task for task in tasks if not of.get(task)) for label, of in returns.items()}
    whole = {label: of for label, of in returns.items() if not missing[label]}
    if not whole:
        raise InputError(
            f"no configuration has runs with a return on all {len(tasks)} tasks; set `group_by` to the "
            "options that define a method, such as strategy"
        )
    of_tasks = [_normalized({label: of[task] for label, of in whole.items()}, bounds[task]) for task in tasks]
    scores = {label: [of[label] for of in of_tasks] for label in whole}
    lowest = min(0.0, *(float(runs.min()) for of in scores.values() for runs in of))
    highest = max(1.0, *(float(runs.max()) for of in scores.values() for runs in of))
    thresholds = np.linspace(lowest, highest, _THRESHOLDS)
    return Scores(
        bounds,
        tuple(_method(label, of, thresholds) for label, of in scores.items()),
        tuple(_improvement(first, second, scores) for first, second in combinations(scores, 2)),
        {label: tasks for label, tasks in missing.items() if tasks},
    )


def parse_bounds(texts: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Parse bounds such as ``CartPole-v1=20,500``, one text per task.

    Raises:
        InputError: a text has a different form.
    """
    found = {}
    for text in texts:
        task, _, numbers = text.rpartition("=")
        try:
            low, high = map(float, numbers.split(","))
        except ValueError:
            task = ""
        if not task:
            raise InputError(f"`normalize` {text!r} must be ENV=LOW,HIGH, such as CartPole-v1=20,500")
        found[task] = low, high
    return found


def _checked(bounds: Bounds, tasks: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the bounds of the tasks. Raise InputError if a task has no valid bounds."""
    for task in tasks:
        if task not in bounds:
            raise InputError(
                f"`normalize` has no bounds for {task}; add {task}=LOW,HIGH, the returns that score 0 and 1, "
                "such as that of a random policy and the target"
            )
        low, high = bounds[task]
        if not math.isfinite(high - low) or low == high:
            raise InputError(f"`normalize` {task}={low:g},{high:g} must be two different finite numbers")
    return {task: bounds[task] for task in tasks}


def _normalized(returns: Mapping[str, Sequence[float]], bounds: tuple[float, float]) -> dict[str, Array]:
    """Return the scores of a task's runs by method. NaN becomes 0, or the lowest score if that is below 0."""
    low, high = bounds
    scores = {name: (np.array(runs, np.float64) - low) / (high - low) for name, runs in returns.items()}
    known = np.concatenate([runs[~np.isnan(runs)] for runs in scores.values()])
    worst = float(known.min(initial=0.0))
    return {name: np.where(np.isnan(runs), worst, runs) for name, runs in scores.items()}


def _method(label: str, scores: list[Array], thresholds: Array) -> MethodScore:
    ends = interval(lambda drawn: performance_profile(drawn, thresholds), scores)
    runs = sum(map(len, scores))
    profile = Band(thresholds, performance_profile(scores, thresholds), *ends, runs)
    return MethodScore(label, runs, estimate(interquartile_score, scores), profile)


def _improvement(first: str, second: str, scores: Mapping[str, list[Array]]) -> Improvement:
    x, y = scores[first], scores[second]

    def probability(drawn: list[Array]) -> Array:
        return probability_of_improvement(drawn[: len(x)], drawn[len(x) :])

    return Improvement(first, second, estimate(probability, [*x, *y]))
