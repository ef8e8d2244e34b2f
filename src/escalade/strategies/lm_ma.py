"""LM-MA-ES, matrix adaptation with limited memory.

Loshchilov, Glasmachers and Beyer 2017, "Limited-memory matrix adaptation for large scale black-box
optimization", arXiv 1705.06693, algorithm 1.
"""

from __future__ import annotations

import math

import numpy as np

from escalade.strategies.base import Fitness
from escalade.strategies.evolution_paths import mu_eff_of, path_growth, with_ties
from escalade.strategies.ranking import default_population, log_weights, share_ties
from escalade.strategies.sized import Matrix, SizedStrategy


class LMMAES(SizedStrategy):
    """Transform noise into steps with a few stored directions ``m_j``, each with its own decay rate.

    A member's step starts as its noise. It is then updated for each of ``4 + 3 * ln(dimension)`` directions
    in turn, but for at most as many directions as members:

        ``y = (1 - c_j) * y + c_j * m_j (m_j' y)`` with ``c_j = 1 / (1.5**j * dimension)``

    Time is O(dimension) per member and direction, and memory O(dimension * ln(dimension)). The paper's rates
    are for more than twice as many dimensions as members. With fewer dimensions, the rates are those of a
    population of a quarter of the dimension. The step size grows at most by the factor e in a generation: the
    paper has no such bound, and its rule diverges if members are many and dimensions few.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation, at least 4; None means ``4 + 3 * ln(dimension)``.
        sigma: initial step size.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
    """

    adapted = ("directions", "path")

    def begin(self, n: int, population: int) -> None:
        self.weights = log_weights(population)
        self.mu_eff = mu_eff_of(self.weights)
        rate = (population if 2 * population < n else n / 4) / n
        self.c_s = 2 * rate
        numbers = np.arange(min(population, default_population(n)))
        self.c_d = 1 / (1.5**numbers * n)
        self.c_c = rate / 4.0**numbers
        self.directions: Matrix = np.zeros((len(numbers), n))
        self.path = np.zeros(n)

    @property
    def scale(self) -> float:
        return self.step_size

    def shaped(self, z: Matrix) -> Matrix:
        # Every step is a multiple of its noise plus a sum of directions. The coefficients depend on inner
        # products only, so the long vectors are read twice instead of once per direction.
        used = self.directions[: min(self.updates, len(self.directions))]
        along, products = z @ used.T, used @ used.T
        factor, sums = 1.0, np.zeros_like(along)
        for j, rate in enumerate(self.c_d[: len(used)]):
            inner = factor * along[:, j] + sums @ products[j]
            factor, sums = (1 - rate) * factor, (1 - rate) * sums
            sums[:, j] = rate * inner
        return np.asarray(factor * z + sums @ used)

    def update(self, fitness: Fitness) -> None:
        z, y = self.draw()
        weights = share_ties(self.weights, fitness)
        self.move(weights @ y)
        mean, m = weights @ z, with_ties(self.mu_eff, self.weights, weights)
        c = self.c_s
        self.path = (1 - c) * self.path + math.sqrt(m * c * (2 - c)) * mean
        decay, new = 1 - self.c_c, np.sqrt(m * self.c_c * (2 - self.c_c))
        self.directions = decay[:, None] * self.directions + np.outer(new, mean)
        self.step_size *= path_growth(c, float(self.path @ self.path), self.dimension)
        self.updates += 1
