"""PGPE with symmetric sampling.

Sehnke et al. 2010, "Parameter-exploring policy gradients", Neural Networks 23(4), in the form of Toklu,
Liskowski, Srivastava 2020, arXiv 2008.02387, algorithm 1.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Unpack

import torch

from escalade.errors import InputError
from escalade.strategies.base import Fitness
from escalade.strategies.descent import Descent, DescentStrategy
from escalade.strategies.gaussian import AdaptiveStrategy, Deviations
from escalade.strategies.optimizers import ClipUp, OptimizerFactory
from escalade.strategies.schedules import Rate, parse
from escalade.strategies.shaping import SHAPINGS
from escalade.strategies.tensors import Start
from escalade.support.arrays import precision
from escalade.support.numbers import real_number
from escalade.support.registry import named


class PGPE(DescentStrategy, AdaptiveStrategy):
    """Gradient ascent on the center and on every parameter's standard deviation.

    With utilities ``u+`` and ``u-`` of the ends of ``n / 2`` mirrored pairs ``center ± d``, and
    their mean ``b``, the gradients are the means over the pairs of

        ``d * (u+ - u-) / 2``                                           (of the center)
        ``((u+ + u-) / 2 - b) * (d**2 - sigma**2) / sigma``             (of the deviations)

    The optimizer descends ``-gradient + weight_decay * center``. The default is ClipUp with the paper's rule,
    by the radius of the first population: ``|sigma| = 15 * max_speed`` and ``lr = max_speed / 2``. The
    deviations take a plain step of ``sigma_lr``, which changes each of them by at most the fraction
    ``max_change``.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation, even: two for each direction.
        sigma: initial standard deviations: a positive number, or a vector of shape (dimension,).
        sigma_lr: the step size of the deviations: a number, a schedule, or its text.
        max_change: the largest change of a deviation in a generation, as a fraction of itself.
        shaping: ``centered-ranks``, ``z-score``, ``nes``, ``sign`` or ``raw`` (fitness minus its mean).
        **descent: optimizer settings and common keywords of :class:`DescentStrategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
    """

    def __init__(
        self,
        x0: Start,
        population: int = 64,
        sigma: Deviations = 0.1,
        *,
        sigma_lr: Rate = 0.1,
        max_change: float = 0.2,
        shaping: str = "centered-ranks",
        **descent: Unpack[Descent],
    ) -> None:
        super().__init__(x0, population, sigma, **descent)
        if not 0 < real_number(max_change, "max_change") < 1:
            raise InputError(f"max_change {max_change} must be between 0 and 1")
        self.shaping = named("shaping", shaping, SHAPINGS)
        self.max_change = max_change
        self._sigma_lr = parse(sigma_lr, "sigma_lr", zero=True)

    def usual_optimizer(self) -> OptimizerFactory:
        """Return ClipUp with the paper's rule."""
        deviations = self.deviations.to(precision(self.center.device))
        return partial(ClipUp, lr=math.sqrt(float(deviations.square().sum())) / 30)

    def update(self, fitness: Fitness) -> None:
        lr, sigma_lr = self.lr, self._sigma_lr(self.generation)
        utilities = self.shaping(fitness)
        directions = self.population_size // 2
        # A sum over both members of each pair, hence the factor 1 / 2, in units of the noise s = d / sigma.
        first, second = self.moments((utilities - utilities.mean()) / (2 * directions))
        gradient = first * self.deviations
        self.optimizer.step(-gradient + self.weight_decay * self.center, lr)
        change = sigma_lr * second
        self.deviations = self.deviations * (1 + torch.clamp(change, -self.max_change, self.max_change))
