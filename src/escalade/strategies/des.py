"""DES, the discovered evolution strategy.

Lange, Schaul, Chen, Zahavy, Dalibard, Lu, Singh and Flennerhag 2023, "Discovering evolution strategies via
meta-black-box optimization", arXiv 2211.11260, section 5.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from escalade.strategies.base import Common, Fitness
from escalade.strategies.gaussian import AdaptiveStrategy, Deviations
from escalade.strategies.ranking import share_ties
from escalade.strategies.schedules import Rate, parse, parse_share
from escalade.strategies.tensors import Start

_SHARPNESS, _STEEPNESS = 20.0, 12.5


class DES(AdaptiveStrategy):
    """Move to a weighted mean of the members, with weights distilled from a learned strategy.

    The member of rank r of n (0 for the best) has the weight

        ``w = softmax(20 * (1 - sigmoid(12.5 * (r / (n - 1) - 0.5))))``

    so that the better half has nearly equal weights. With members ``center + sigma * s_i``:

        ``center += lr * sigma * sum_i w_i * s_i``
        ``sigma += sigma_lr * (sigma * sqrt(sum_i w_i * s_i**2) - sigma)``

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation.
        sigma: initial standard deviations: a positive number, or a vector of shape (dimension,).
        lr: the step size of the center: a number, a schedule, or its text.
        sigma_lr: the step size of the deviations, at most 1.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
    """

    antithetic = False

    def __init__(
        self,
        x0: Start,
        population: int = 64,
        sigma: Deviations = 0.1,
        *,
        lr: Rate = 1.0,
        sigma_lr: Rate = 0.1,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(x0, population, sigma, **common)
        self.lr_schedule = parse(lr, "lr", zero=True)
        self._sigma_lr = parse_share(sigma_lr, "sigma_lr")

    def update(self, fitness: Fitness) -> None:
        lr, sigma_lr = self.lr, self._sigma_lr(self.generation)
        weights = share_ties(rank_weights(len(fitness)), fitness)
        step, squares = self.noise_sum(weights), self.square_sum(weights)
        self.center += lr * self.deviations * step
        self.deviations = self.deviations * (1 + sigma_lr * (torch.sqrt(squares) - 1))


def rank_weights(population: int) -> NDArray[np.float64]:
    """Return the weights from the best to the worst member, shape (population,); their sum is 1."""
    places = np.arange(population) / (population - 1) - 0.5
    powers = np.exp(_SHARPNESS / (1 + np.exp(_STEEPNESS * places)) - _SHARPNESS)
    return np.asarray(powers / powers.sum())
