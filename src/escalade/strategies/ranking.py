"""Functions of the order of fitness: ranks, shared weights for ties, elites.

Fitness has shape (n,), larger is better; weights are float64 of shape (n,).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from escalade.errors import InputError
from escalade.support.numbers import real_number

Array = NDArray[np.float64]


def ranks(fitness: Array) -> Array:
    """Return ranks from 0 (worst) to n - 1 (best). Ties share the mean of their ranks."""
    ordered = np.sort(fitness)
    below = np.searchsorted(ordered, fitness, side="left")
    upto = np.searchsorted(ordered, fitness, side="right")
    return (below + upto - 1) / 2.0


def share_ties(by_rank: Array, fitness: Array) -> Array:
    """Return each member's weight from the weights in order of rank, best first.

    Members with equal fitness share the mean of their ranks' weights, so their order does not matter.
    """
    order = np.argsort(-fitness, kind="stable")
    weights = np.empty(len(fitness))
    weights[order] = by_rank
    ordered = fitness[order]
    if (ordered[1:] != ordered[:-1]).all():
        return weights
    _, group = np.unique(-fitness, return_inverse=True)  # group 0 is the best
    totals = np.bincount(group, weights=weights)
    return np.asarray((totals / np.bincount(group))[group])


def log_weights(population: int, parents: int | None = None) -> Array:
    """Return the weights from the best to the worst member, shape (population,); their sum is 1.

    They are ``ln(n + 1/2) - ln(rank)`` for the best floor(n), normalized, and 0 for the others, where n is
    ``parents`` or else half of the population (Hansen 2016, arXiv 1604.00772, eq. 49 and 53).
    """
    most = population / 2 if parents is None else parents
    raw = np.log(most + 0.5) - np.log(np.arange(1, population + 1))
    positive = np.where(np.arange(population) < int(most), raw, 0.0)
    return np.asarray(positive / positive.sum())


def default_population(dimension: int) -> int:
    """Return ``4 + 3 * ln(dimension)`` (Hansen 2016, arXiv 1604.00772v2, equation 48)."""
    return 4 + int(3 * math.log(dimension))


def elite_weights(fitness: Array, elites: int) -> Array:
    """Return ``1 / elites`` for the best ``elites`` members and 0 for the others."""
    by_rank = np.zeros(len(fitness))
    by_rank[:elites] = 1.0 / elites
    return share_ties(by_rank, fitness)


def elite_count(elite: float, population: int) -> int:
    """Return the number of elites, at least two, for the fraction ``elite`` of ``population``.

    Raises:
        InputError: the fraction is not in (0, 1], or leaves fewer than two members.
    """
    if not 0 < real_number(elite, "elite") <= 1:
        raise InputError(f"elite {elite} must be a fraction of the population, above 0 and up to 1")
    count = int(elite * population + 1e-9)  # 0.29 of 100 is 29, not 28
    if count < 2:
        least = math.ceil(2e4 / population) / 1e4  # rounded up, so that this value suffices
        raise InputError(
            f"elite {elite} of a population of {population} leaves {count}, but at least 2 are needed;"
            f" use elite {least:g} or more"
        )
    return count
