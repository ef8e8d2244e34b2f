"""Simple Gaussian evolution strategy.

It is the (mu/mu, lambda) scheme of Rechenberg 1973 and Schwefel 1977 (Beyer and Schwefel 2002, "Evolution
strategies: a comprehensive introduction"). Its step size is estimated from the elite (Hansen 2016, "The CMA
Evolution Strategy: A Tutorial", arXiv 1604.00772, section 3.1, on the diagonal).
"""

from __future__ import annotations

from typing import Unpack

import torch

from escalade.strategies.base import Common, Fitness
from escalade.strategies.gaussian import AdaptiveStrategy, Deviations
from escalade.strategies.ranking import elite_count, elite_weights
from escalade.strategies.schedules import Rate, parse, parse_share
from escalade.strategies.tensors import Start


class SimpleGaussian(AdaptiveStrategy):
    """Move to the mean of the elite, and towards the spread of the elite's steps.

    With the mean taken over the best fraction ``elite`` of members ``x_i``:

        ``center += lr * mean(x_i - center)``
        ``sigma += sigma_lr * (sqrt(mean((x_i - old center)**2)) - sigma)``

    Deviations are measured from the old center, so they reflect the elite's steps: they grow along a slope,
    whereas those of :class:`~escalade.strategies.cem.CEM` shrink.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation.
        sigma: initial standard deviations: a positive number, or a vector of shape (dimension,).
        elite: the fraction of members that are the elite; at least two members.
        lr: fraction of the way to the elite's mean that the center moves. A number, a schedule, or its text.
        sigma_lr: the same for the deviations.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
    """

    antithetic = False
    grows = False  # the weights are made for a fixed number of members

    def __init__(
        self,
        x0: Start,
        population: int = 64,
        sigma: Deviations = 0.1,
        *,
        elite: float = 0.5,
        lr: Rate = 1.0,
        sigma_lr: Rate = 0.1,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(x0, population, sigma, **common)
        self.elites = elite_count(elite, population)
        self.lr_schedule = parse(lr, "lr", zero=True)
        self._sigma_lr = parse_share(sigma_lr, "sigma_lr")

    def update(self, fitness: Fitness) -> None:
        lr, sigma_lr = self.lr, self._sigma_lr(self.generation)
        weights = elite_weights(fitness, self.elites)
        step, spread = self.noise_sum(weights), torch.sqrt(self.square_sum(weights))
        self.center += lr * self.deviations * step
        self.deviations = self.deviations * (1 + sigma_lr * (spread - 1))
