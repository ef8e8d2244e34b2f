"""SNES, the natural gradient on diagonal Gaussians.

Schaul, Glasmachers, Schmidhuber 2011, "High dimensions and heavy tails for natural evolution strategies";
Wierstra et al. 2014, "Natural evolution strategies", JMLR 15, algorithm 6.
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
import torch

from escalade.errors import InputError
from escalade.strategies.base import Common, Fitness
from escalade.strategies.gaussian import AdaptiveStrategy, Deviations
from escalade.strategies.schedules import Rate, parse
from escalade.strategies.shaping import SHAPINGS
from escalade.strategies.tensors import Start
from escalade.support.registry import named


class SNES(AdaptiveStrategy):
    """Follow the natural gradient of the center and of the logarithm of each deviation.

    With utilities ``u_i`` of members ``center + sigma * s_i``:

        ``center += lr * sigma * sum_i u_i * s_i``
        ``sigma *= exp(sigma_lr / 2 * sum_i u_i * (s_i**2 - 1))``

    Utilities are divided by the sum of their absolute values, except those of ``nes``, which need no scaling.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation.
        sigma: initial standard deviations: a positive number, or a vector of shape (dimension,).
        lr: the step size of the center: a number, a schedule, or its text.
        sigma_lr: the step size of the deviations; None means the paper's ``(3 + ln d) / (5 * sqrt(d))`` in d
            dimensions.
        shaping: ``centered-ranks``, ``z-score``, ``nes``, ``sign`` or ``raw`` (fitness minus its mean).
        mirrored: True to sample pairs ``+s`` and ``-s``, which halves the reads of the noise table and needs
            an even population.
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
        sigma_lr: Rate | None = None,
        shaping: str = "nes",
        mirrored: bool = False,
        **common: Unpack[Common],
    ) -> None:
        if not isinstance(mirrored, bool | np.bool_):
            raise InputError(f"mirrored {mirrored!r} must be true or false")
        self.antithetic = bool(mirrored)
        super().__init__(x0, population, sigma, **common)
        if sigma_lr is None:
            sigma_lr = (3 + math.log(self.dimension)) / (5 * math.sqrt(self.dimension))
        self.lr_schedule = parse(lr, "lr", zero=True)
        self._sigma_lr = parse(sigma_lr, "sigma_lr", zero=True)
        self.shaping = named("shaping", shaping, SHAPINGS)
        self._scaled = shaping == "nes"

    def update(self, fitness: Fitness) -> None:
        lr, sigma_lr = self.lr, self._sigma_lr(self.generation)
        utilities = self.shaping(fitness)
        if not self._scaled:
            size = abs(utilities).sum()
            utilities = utilities / size if size > 0 else utilities
        first, second = self.moments(utilities)
        self.center += lr * self.deviations * first
        self.deviations = self.deviations * torch.exp(sigma_lr / 2 * second)
