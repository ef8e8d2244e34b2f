"""Canonical ES, with the cumulative step-size adaptation of its authors' code.

Chrabaszcz, Loshchilov and Hutter 2018, "Back to basics: benchmarking canonical evolution strategies for
playing Atari", arXiv 1802.08842, algorithm 2.
"""

from __future__ import annotations

from typing import Unpack

import torch

from escalade.errors import InputError
from escalade.strategies.base import Common, Fitness
from escalade.strategies.evolution_paths import moved, mu_eff_of, path_growth, with_ties
from escalade.strategies.gaussian import GaussianStrategy
from escalade.strategies.ranking import log_weights, share_ties
from escalade.strategies.sized import first_step_size
from escalade.strategies.tensors import Start
from escalade.support.arrays import precision
from escalade.support.numbers import whole_number


class CanonicalES(GaussianStrategy):
    """Move to the weighted mean of the best members, with a step size that grows while the moves agree.

    With members ``center + sigma * z_i``, and weights ``w_i`` of the best ``parents`` by their rank:

        ``center += sigma * sum_i w_i * z_i``

    The step size grows at most by the factor e in a generation; the paper has no such bound.
    Members are addresses of noise without mirrored pairs. Apart from the noise, memory is O(dimension).

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation.
        sigma: initial step size.
        parents: number of members with a positive weight; None means half of them.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
    """

    adapted = ("step_size", "path")
    antithetic = False
    grows = False  # the weights are made for a fixed number of members

    def __init__(
        self,
        x0: Start,
        population: int = 64,
        sigma: float | str = 0.1,
        *,
        parents: int | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(x0, population, **common)
        parents = population // 2 if parents is None else whole_number(parents, "parents")
        if not 1 <= parents <= population:
            raise InputError(f"parents {parents} must be at least 1 and at most the population, {population}")
        self.weights = log_weights(population, parents)
        self.mu_eff = mu_eff_of(self.weights)
        self.c_sigma = (self.mu_eff + 2) / (self.dimension + self.mu_eff + 5)
        self.step_size = first_step_size(sigma)
        self.path = torch.zeros_like(self.center)

    @property
    def sigma(self) -> float:
        return self.step_size

    def narrow(self, factors: Fitness) -> None:
        """Multiply the step size by the smallest factor."""
        self.step_size *= float(factors.min())

    def update(self, fitness: Fitness) -> None:
        weights = share_ties(self.weights, fitness)
        step = self.noise_sum(weights)
        self.center += self.step_size * step
        self.path = moved(self.path, self.c_sigma, with_ties(self.mu_eff, self.weights, weights), step)
        length2 = float(self.path.to(precision(self.path.device)).square().sum())
        self.step_size *= path_growth(self.c_sigma, length2, self.dimension)
