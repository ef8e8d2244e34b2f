"""The cross-entropy method with a diagonal Gaussian.

De Boer, Kroese, Mannor, Rubinstein 2005, "A tutorial on the cross-entropy method". Its added noise: Szita and
Lorincz 2006, "Learning Tetris using the noisy cross-entropy method".
"""

from __future__ import annotations

from typing import Unpack

import torch

from escalade.strategies.base import Common, Fitness
from escalade.strategies.gaussian import AdaptiveStrategy, Deviations
from escalade.strategies.ranking import elite_count, elite_weights
from escalade.strategies.schedules import Rate, parse, parse_share
from escalade.strategies.tensors import Start


class CEM(AdaptiveStrategy):
    """Fit the Gaussian to the best fraction ``elite`` of its members.

    With mean and standard deviation taken over the elite members ``x_i``:

        ``center += lr * (mean(x_i) - center)``
        ``sigma += sigma_lr * (sqrt(std(x_i)**2 + noise) - sigma)``

    For k elite members the standard deviation divides by k - 1, not by k as in the tutorial: dividing by k
    would by itself shrink the search by ``sqrt(1 - 1/k)`` in each generation.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation.
        sigma: initial standard deviations: a positive number, or a vector of shape (dimension,).
        elite: the fraction of members that the Gaussian is fitted to; at least two members.
        lr: the tutorial's smoothing of the center; 1 means no smoothing. A number, a schedule, or its text.
        sigma_lr: the same for the deviations.
        noise: variance added in each generation so that the search does not stop early; preferably a
            schedule that falls to zero.
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
        elite: float = 0.2,
        lr: Rate = 1.0,
        sigma_lr: Rate = 1.0,
        noise: Rate | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(x0, population, sigma, **common)
        self.elites = elite_count(elite, population)
        self.lr_schedule = parse(lr, "lr", zero=True)
        self._sigma_lr = parse_share(sigma_lr, "sigma_lr")
        self._noise = None if noise is None else parse(noise, "noise", zero=True)

    def update(self, fitness: Fitness) -> None:
        lr, sigma_lr = self.lr, self._sigma_lr(self.generation)
        weights = elite_weights(fitness, self.elites)
        mean = self.noise_sum(weights)
        # The variance of the elites about their own mean is too small: without ties by elites / (elites - 1).
        variance = self.square_sum(weights, mean) / (1 - float((weights**2).sum()))
        variance = self.deviations.square() * variance
        if self._noise is not None:
            variance = variance + self._noise(self.generation)
        self.center += lr * self.deviations * mean
        change = torch.sqrt(variance) - self.deviations
        self.deviations = self.deviations + sigma_lr * change
