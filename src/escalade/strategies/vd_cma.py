"""VD-CMA, which is CMA-ES with the covariance ``D (I + v v') D``, with a diagonal D and a vector v.

Akimoto, Auger and Hansen 2014, "Comparison-based natural gradient optimization in high dimension", GECCO
2014.
"""

from __future__ import annotations

import math

import numpy as np

from escalade.strategies.axis_shape import AxisStrategy
from escalade.strategies.base import Fitness
from escalade.strategies.evolution_paths import damping, expected_norm, moved, mu_eff_of, with_ties
from escalade.strategies.ranking import log_weights, share_ties

_MOST = 0.7  # largest relative change of the axis and of each deviation per step, as in pycma's VD-CMA


class VDCMA(AxisStrategy):
    """Adapt a step size, a deviation for each parameter, and one axis along which the search is longer.

    Members are ``center + step_size * y`` with ``y`` of covariance ``D (I + v v') D``; D and v follow the
    natural gradient of the better half of the members and of the path. The step size follows the path as in
    CMA-ES, with its own rate. Unlike in the paper, a step changes v and D by at most 0.7 of their lengths,
    and in few dimensions the rates are at least half of CMA-ES's. Time and memory are O(dimension) per
    member.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation, at least 4; None means ``4 + 3 * ln(dimension)``.
        sigma: initial step size.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
    """

    def begin(self, n: int, population: int) -> None:
        super().begin(n, population)
        self.weights = log_weights(population)
        m = self.mu_eff = mu_eff_of(self.weights)
        self.c_sigma = math.sqrt(m) / (2 * (math.sqrt(n) + math.sqrt(m)))
        self.d_sigma = damping(self.c_sigma, m, n)
        self.c_c = (4 + m / n) / (n + 4 + 2 * m / n)
        # Fewer numbers to learn than in CMA-ES, hence faster rates; at least half of its rates if n is small.
        faster = max((n - 5) / 6, 0.5)
        self.c_1 = faster * 2 / ((n + 1.3) ** 2 + m)
        self.c_mu = min(1 - self.c_1, faster * 2 * (m - 2 + 1 / m) / ((n + 2) ** 2 + m))

    def update(self, fitness: Fitness) -> None:
        z, y = self.draw()
        weights = share_ties(self.weights, fitness)
        m = with_ties(self.mu_eff, self.weights, weights)
        step = weights @ y
        self.move(step)
        self.path_sigma = moved(self.path_sigma, self.c_sigma, m, weights @ z)
        length = float(np.linalg.norm(self.path_sigma))
        self.updates += 1
        settled = float(length**2 < (2 + 4 / (self.dimension + 1)) * self.dimension)
        self.path_c = moved(self.path_c, self.c_c, m, step, settled)
        axis_step, s = self.gradient(z, self.c_mu * weights, self.path_c, settled * self.c_1)
        axis_step, s = self.cut(axis_step, s, _MOST)
        self.axis, self.deviations = self.axis + axis_step, self.deviations * (1 + s)
        self.step_size *= math.exp(self.c_sigma / self.d_sigma * (length / expected_norm(self.dimension) - 1))
