"""MA-ES, which is CMA-ES without a covariance matrix and its decomposition.

Beyer and Sendhoff 2017, "Simplify your covariance matrix adaptation evolution strategy", IEEE Transactions on
Evolutionary Computation 21(5), figure 3.
"""

from __future__ import annotations

import math

import numpy as np

from escalade.strategies.base import Fitness
from escalade.strategies.evolution_paths import expected_norm, moved, mu_eff_of, with_ties
from escalade.strategies.injected import InjectedStrategy
from escalade.strategies.matrix import MatrixStrategy
from escalade.strategies.ranking import log_weights, share_ties
from escalade.strategies.sized import Matrix


class MAES(InjectedStrategy, MatrixStrategy):
    """Adapt a matrix ``M``, which transforms noise into steps, along one evolution path.

    Members are ``center + step_size * M z``. With weights ``w`` of the better half, and
    ``s`` the path of the weighted mean noise:

        ``M += M (c_1 / 2 * (s s' - I) + c_w / 2 * (sum_i w_i z_i z_i' - I))``

    Memory is O(dimension**2), and so is the time per member: in 100 dimensions a tenth of CMA-ES's.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation, at least 4; None means ``4 + 3 * ln(dimension)``.
        sigma: initial step size.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid, or the matrices would not fit in this host's memory.
    """

    adapted = ("path",)

    def begin(self, n: int, population: int) -> None:
        super().begin(n, population)
        self.weights = log_weights(population)
        m = self.mu_eff = mu_eff_of(self.weights)
        self.c_s = (m + 2) / (n + m + 5)
        self.c_1 = 2 / ((n + 1.3) ** 2 + m)
        self.c_w = min(1 - self.c_1, 2 * (m + 1 / m - 2) / ((n + 2) ** 2 + m))
        self.damping = 1 + self.c_s + 2 * max(0.0, math.sqrt((m - 1) / (n + 1)) - 1)
        self.path = np.zeros(n)

    def unshaped(self, y: Matrix) -> Matrix:
        return np.asarray(np.linalg.lstsq(self.matrix, y.T)[0].T)

    def update(self, fitness: Fitness) -> None:
        z, y = self.draw()
        weights = share_ties(self.weights, fitness)
        self.move(weights @ y)
        m = with_ties(self.mu_eff, self.weights, weights)
        self.path = moved(self.path, self.c_s, m, weights @ z)
        # The product with M, as outer products of steps that are already known: O(n**2) per member.
        learnt = self.c_1 / 2 * np.outer(self.matrix @ self.path, self.path)
        learnt += self.c_w / 2 * (y.T * weights) @ z
        self.matrix = (1 - (self.c_1 + self.c_w) / 2) * self.matrix + learnt
        length = float(np.linalg.norm(self.path))
        growth = self.c_s / self.damping * (length / expected_norm(self.dimension) - 1)
        self.step_size *= math.exp(min(1.0, growth))  # the bound is for injected points
        self.updates += 1
