"""sep-CMA-ES, which is CMA-ES with a diagonal covariance, learnt faster.

Ros and Hansen 2008, "A Simple Modification in CMA-ES Achieving Linear Time and Space Complexity" (PPSN X).
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
import torch
from torch import Tensor

from escalade.strategies.base import Common, Fitness
from escalade.strategies.evolution_paths import damping, expected_norm, heaviside, moved, mu_eff_of, with_ties
from escalade.strategies.gaussian import AdaptiveStrategy, Deviations
from escalade.strategies.ranking import share_ties
from escalade.strategies.tensors import Start
from escalade.support.arrays import precision


class SepCMAES(AdaptiveStrategy):
    """Adapt a step size and one variance per parameter along two evolution paths.

    Members are ``center + step_size * sqrt(variances) * z``, with time and memory O(dimension). The
    learning rate of the covariance is ``(dimension + 2) / 3`` times that of full CMA-ES.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation, at least 4; None means ``4 + 3 * ln(dimension)``.
        sigma: initial standard deviations: a positive number, or a vector of shape (dimension,).
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
    """

    adapted = ("step_size", "updates", "variances", "path_sigma", "path_c")
    antithetic = False
    smallest = 4
    grows = False  # the weights are made for a fixed number of members

    def __init__(
        self, x0: Start, population: int | None = None, sigma: Deviations = 0.5, **common: Unpack[Common]
    ) -> None:
        super().__init__(x0, population, sigma, **common)
        n = self.dimension
        self._set_constants(n, self.population_size)
        deviations = self.deviations.to(precision(self.center.device))
        self.step_size = float(deviations.log().mean().exp())
        self.variances: Tensor = (deviations / self.step_size).square()
        self.path_sigma, self.path_c = torch.zeros_like(deviations), torch.zeros_like(deviations)
        self.updates = 0

    def _set_constants(self, n: int, population: int) -> None:
        mu = population // 2
        weights = math.log(mu + 1) - np.log(np.arange(1, mu + 1))
        self.weights = np.zeros(population)  # in order of rank, best first
        self.weights[:mu] = weights / weights.sum()
        m = self.mu_eff = mu_eff_of(self.weights)
        self.c_sigma = (m + 2) / (n + m + 3)
        self.d_sigma = damping(self.c_sigma, m, n)
        self.c_c = 4 / (n + 4)
        full = 2 / (m * (n + math.sqrt(2)) ** 2)
        full += (1 - 1 / m) * min(1.0, (2 * m - 1) / ((n + 2) ** 2 + m))
        self.c_cov = min(1.0, (n + 2) / 3 * full)
        self.chi = expected_norm(n)

    @property
    def condition(self) -> float:
        """Ratio of the largest to the smallest variance."""
        return float(self.variances.max() / self.variances.min())

    def narrow(self, factors: Fitness) -> None:
        super().narrow(factors)
        each = torch.from_numpy(factors).to(self.variances)
        self.variances, self.path_c = self.variances * each**2, self.path_c * each

    def update(self, fitness: Fitness) -> None:
        n, m = self.dimension, self.mu_eff
        weights = share_ties(self.weights, fitness)
        mu_eff = with_ties(m, self.weights, weights)
        sums = self.noise_sum(weights), self.square_sum(weights)
        whitened, squares = (each.to(self.variances) for each in sums)
        step = self.variances.sqrt() * whitened
        self.center += (self.step_size * step).to(self.center.dtype)

        c = self.c_sigma
        self.path_sigma = moved(self.path_sigma, c, mu_eff, whitened)
        length = float(self.path_sigma.norm())
        self.updates += 1
        h_sigma = heaviside(length, c, self.updates, n)
        self.step_size *= math.exp(c / self.d_sigma * (length / self.chi - 1))

        self.path_c = moved(self.path_c, self.c_c, mu_eff, step, h_sigma)
        learnt = self.path_c.square() / m + (1 - 1 / m) * self.variances * squares
        self.variances = (1 - self.c_cov) * self.variances + self.c_cov * learnt
        self.deviations = (self.step_size * self.variances.sqrt()).to(self.center.dtype)
