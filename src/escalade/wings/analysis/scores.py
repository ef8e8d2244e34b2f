"""Methods across several tasks: scores between two bounds, and their statistics after Agarwal et al. 2021."""

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
"""The returns that count as scores of 0 and of 1, by task."""

_THRESHOLDS = 101


@dataclass(frozen=True)
class MethodScore:
    """The scores of one method on all tasks."""

    label: str
    runs: int
    """Number of runs on all tasks together."""
    score: Estimate
    """Interquartile mean of all runs' scores."""
    profile: Band
    """Share of runs, every task counting the same, that score above each of ``profile.at``."""


@dataclass(frozen=True)
class Improvement:
    """The probability that a run of ``first`` beats one of ``second`` on a task drawn at random."""

    first: str
    second: str
    probability: Estimate


@dataclass(frozen=True)
class Scores:
    """The result of :func:`score`."""

    bounds: dict[str, tuple[float, float]]
    methods: tuple[MethodScore, ...]
    improvements: tuple[Improvement, ...]
    left_out: dict[str, tuple[str, ...]]
    """Methods that have no run on some of the tasks, and those tasks."""


def score(returns: Mapping[str, Mapping[str, Sequence[float]]], bounds: Bounds) -> Scores:
    """Score methods on several tasks: ``(return - low) / (high - low)``, with the task's own bounds.

    Args:
        returns: of runs, by task, by method. A method that lacks a task is left out. A run whose return is
            NaN, as where it diverged, scores 0.
        bounds: of every task, ``(low, high)``; where smaller returns are better, ``low`` is larger.

    Raises:
        InputError: bounds are missing, equal or not finite, or no method has runs on all tasks.
    """
    tasks = list(dict.fromkeys(task for of in returns.values() for task in of))
    bounds = _checked(bounds, tasks)
    missing = {label: tuple(task for task in tasks if not of.get(task)) for label, of in returns.items()}
    whole = {label: of for label, of in returns.items() if not missing[label]}
    if not whole:
        raise InputError(
            f"no configuration has runs with a return on all {len(tasks)} tasks: say with `group_by` which "
            "options make a method, such as strategy"
        )
    of_tasks = [_normalised({label: of[task] for label, of in whole.items()}, bounds[task]) for task in tasks]
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
    """Bounds as they are typed: ``CartPole-v1=20,500``, one a task.

    Raises:
        InputError: a text is written in another way.
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
    """Return the bounds of the tasks; raise InputError if they do not fit them."""
    for task in tasks:
        if task not in bounds:
            raise InputError(
                f"`normalize` has no bounds for {task}: give {task}=LOW,HIGH, the returns that score 0 and "
                "1, such as a random policy's and the target"
            )
        low, high = bounds[task]
        if not math.isfinite(high - low) or low == high:
            raise InputError(f"`normalize` {task}={low:g},{high:g} must be two different finite numbers")
    return {task: bounds[task] for task in tasks}


def _normalised(returns: Mapping[str, Sequence[float]], bounds: tuple[float, float]) -> dict[str, Array]:
    """Scores of a task's runs, by method. One without a return has 0, or the lowest there is, if below 0."""
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
