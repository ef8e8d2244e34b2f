"""Fitness shaping: from the members' fitness to the utilities that weigh their perturbations.

The functions of :data:`SHAPINGS` take fitness of shape (n,), larger is better, and return float64 utilities
of shape (n,). Members with equal fitness get equal utilities. A generation in which all fitness is equal
never gets here: there is nothing to learn from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from escalade.strategies.ranking import Array, ranks
from escalade.support.numbers import LARGEST


def centered_ranks(fitness: Array) -> Array:
    """Map ranks linearly to [-0.5, 0.5] (Salimans et al. 2017, section 2.1).

    Examples:
        >>> centered_ranks(np.array([3.0, -1000.0, 5.0])).tolist()
        [0.0, -0.5, 0.5]
    """
    return ranks(fitness) / (len(fitness) - 1) - 0.5


def z_score(fitness: Array) -> Array:
    """Subtract the mean of the fitness and divide by its (population) standard deviation."""
    scaled = fitness / np.max(np.abs(fitness))  # so that squares of huge returns stay finite
    deviation = scaled.std()
    return (scaled - scaled.mean()) / deviation if deviation > 0 else np.zeros(len(fitness))


def nes_utilities(fitness: Array) -> Array:
    """Return the rank-based utilities of NES, which sum to zero.

    ``max(0, ln(n/2 + 1) - ln(k)) / sum - 1/n`` for the k-th best of n (Wierstra et al. 2014,
    "Natural Evolution Strategies", section 3.1). Ties share the mean utility of their ranks.
    """
    count = len(fitness)
    by_rank = np.maximum(0.0, np.log(count / 2 + 1) - np.log(np.arange(1, count + 1)))
    by_rank = by_rank / by_rank.sum() - 1.0 / count
    _, group = np.unique(-fitness, return_inverse=True)  # group 0 is the best
    sizes = np.bincount(group)
    # Sums of the sorted utilities of each group, as differences of the cumulative sum.
    running = np.concatenate([[0.0], np.cumsum(by_rank)])
    ends = np.cumsum(sizes)
    means = (running[ends] - running[ends - sizes]) / sizes
    return np.asarray(means[group])


def sign(fitness: Array) -> Array:
    """Return +1 above the median, -1 below it and 0 at it."""
    return np.asarray(np.sign(fitness - np.median(fitness)))


def raw(fitness: Array) -> Array:
    """Subtract the mean from the fitness, without scaling.

    The mean is a baseline: subtracting it does not change the expected gradient, and cancels exactly in
    antithetic pairs.
    """
    return np.asarray(fitness - fitness.mean())


SHAPINGS: Final[dict[str, Callable[[Array], Array]]] = {
    "centered-ranks": centered_ranks,
    "z-score": z_score,
    "nes": nes_utilities,
    "sign": sign,
    "raw": raw,
}


def usable(fitness: Array) -> NDArray[np.bool_]:
    """Return a mask of finite fitness that is at most 1e30 in size, so that sums stay finite; shape (n,)."""
    return np.abs(fitness) <= LARGEST


def usable_number(value: float) -> bool:
    """Return whether a single number is :func:`usable`."""
    return abs(value) <= LARGEST


def finite_fitness(fitness: Array) -> tuple[Array, list[int]]:
    """Replace fitness that is not :func:`usable` by the worst usable one; also return the affected members.

    A diverged simulation must neither corrupt the center nor look good. If no member is usable, all fitness
    becomes zero and the center does not move.
    """
    bad = ~usable(fitness)
    if not bad.any():
        return fitness, []
    worst = fitness[~bad].min() if not bad.all() else 0.0
    return np.where(bad, worst, fitness), [int(i) for i in np.flatnonzero(bad)]


def within_pairs(fitness: Array) -> Array:
    """Subtract the mean of each antithetic pair, members 2k and 2k + 1, after :func:`finite_fitness`.

    For pairs that begin in different states, on which returns depend more than on the members.

    Examples:
        >>> within_pairs(np.array([3.0, 1.0, -20.0, -21.0])).tolist()
        [1.0, -1.0, 0.5, -0.5]
    """
    pairs = finite_fitness(fitness)[0].reshape(-1, 2)
    return np.asarray(pairs - pairs.mean(axis=1, keepdims=True)).reshape(-1)
