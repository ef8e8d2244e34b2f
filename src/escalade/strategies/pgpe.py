"""PGPE with symmetric sampling: Sehnke et al. 2010, "Parameter-exploring policy gradients", Neural
Networks 23(4), in the form of Toklu, Liskowski, Srivastava 2020, arXiv 2008.02387, algorithm 1.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from escalade.errors import InputError
from escalade.perturbation import NoiseSource
from escalade.strategies.adaptive import AdaptiveStrategy
from escalade.strategies.base import Direction, Fitness
from escalade.strategies.descent import DescentStrategy
from escalade.strategies.optimizers import ClipUp, OptimizerFactory
from escalade.strategies.schedules import Schedule, parse
from escalade.strategies.shaping import SHAPINGS
from escalade.support.numbers import real_number
from escalade.support.registry import named


class PGPE(DescentStrategy, AdaptiveStrategy):
    """Gradient ascent on the centre and on every parameter's standard deviation.

    With utilities ``u+`` and ``u-`` of the ends of ``n / 2`` mirrored pairs ``centre ± d``, and
    their mean ``b``, the gradients are the means over the pairs of

        ``d * (u+ - u-) / 2``                                           (of the centre)
        ``((u+ + u-) / 2 - b) * (d**2 - sigma**2) / sigma``             (of the deviations)

    The optimiser takes ``-gradient + weight_decay * centre``. The deviations take a plain step of
    ``sigma_lr``, in which none changes by more than the fraction ``max_change`` of itself.

    Args:
        x0: the first centre, shape (dimension,).
        population: members a generation, even: two for each direction.
        sigma: the first deviations: a positive number, or a vector of shape (dimension,).
        optimizer: ``adam``, ``sgd``, ``clipup``, or what makes a ``torch.optim`` optimiser of the
            parameters. None is ClipUp set by the paper's rule from the radius of the first population,
            ``|sigma| = 15 * max_speed`` and ``lr = max_speed / 2``.
        lr: the optimiser's step size: a number, a schedule, or the text of one; its own when not given.
        sigma_lr: the step size of the deviations, likewise.
        max_change: the largest change of a deviation in a generation, as a fraction of itself.
        momentum: of ``sgd`` and ``clipup``, in [0, 1); 0.9 when not given.
        weight_decay: pull towards zero, not negative.
        shaping: ``centered-ranks``, ``z-score``, ``nes``, ``sign`` or ``raw`` (fitness less its mean).
        seed: the same seed gives the same members.
        direction: what the fitness is to become, ``maximize`` or ``minimize``.
        perturbation: the source of the noise; a table of noise made from ``seed`` when not given.

    Raises:
        InputError: an argument is impossible; the message names it.
    """

    low_rank = True

    def __init__(
        self,
        x0: ArrayLike | Tensor,
        population: int = 64,
        sigma: float | str | ArrayLike | Tensor = 0.1,
        *,
        optimizer: str | OptimizerFactory | None = None,
        lr: float | str | Schedule | None = None,
        sigma_lr: float | str | Schedule = 0.1,
        max_change: float = 0.2,
        momentum: float | None = None,
        weight_decay: float = 0.0,
        shaping: str = "centered-ranks",
        seed: int = 0,
        direction: Direction = "maximize",
        perturbation: NoiseSource | None = None,
    ) -> None:
        super().__init__(x0, population, sigma, seed=seed, direction=direction, perturbation=perturbation)
        if not 0 < real_number(max_change, "max_change") < 1:
            raise InputError(f"max_change {max_change} must be between 0 and 1")
        self.shaping = named("shaping", shaping, SHAPINGS)
        self.max_change = max_change
        self._sigma_lr = parse(sigma_lr, "sigma_lr", zero=True)
        radius = math.sqrt(float(self.deviations.double().square().sum()))
        self.set_optimizer(optimizer or partial(ClipUp, lr=radius / 30), lr, momentum, weight_decay)

    def update(self, fitness: Fitness) -> None:
        lr, sigma_lr = self.lr, self._sigma_lr(self.generation)
        utilities = self.shaping(fitness)
        directions = self.population_size // 2
        # Over all members of both ends, hence halved; in units of the noise s = d / sigma.
        first, second = self.moments((utilities - utilities.mean()) / (2 * directions))
        gradient = first * self.deviations
        self.optimizer.step(-gradient + self.weight_decay * self.center, lr)
        change = sigma_lr * second
        self.deviations = self.deviations * (1 + torch.clamp(change, -self.max_change, self.max_change))
