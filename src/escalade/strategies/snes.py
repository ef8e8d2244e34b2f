"""SNES, the natural gradient on diagonal Gaussians: Schaul, Glasmachers, Schmidhuber 2011, "High
dimensions and heavy tails for natural evolution strategies"; Wierstra et al. 2014, "Natural
evolution strategies", JMLR 15, algorithm 6.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from escalade.strategies.adaptive import AdaptiveStrategy
from escalade.strategies.base import Fitness
from escalade.strategies.schedules import Schedule, parse
from escalade.strategies.shaping import shaping_named


class SNES(AdaptiveStrategy):
    """Follow the natural gradient of the centre and of the logarithm of each deviation.

    With utilities ``u_i`` of members ``centre + sigma * s_i``:

        ``centre += lr * sigma * sum_i u_i * s_i``
        ``sigma *= exp(sigma_lr / 2 * sum_i u_i * (s_i**2 - 1))``

    ``sigma_lr`` None means the paper's ``(3 + ln d) / (5 * sqrt(d))`` in d dimensions. Utilities
    are divided by the sum of their sizes unless they are NES's own, which need no scaling.
    ``mirrored`` samples in pairs ``±s``, which halves the table reads and needs an even population.
    """

    antithetic = False

    def __init__(
        self,
        x0: ArrayLike | Tensor,
        population: int = 64,
        sigma: float | str | ArrayLike | Tensor = 0.1,
        *,
        lr: float | str | Schedule = 1.0,
        sigma_lr: float | str | Schedule | None = None,
        shaping: str = "nes",
        mirrored: bool = False,
        **keywords: Any,
    ) -> None:
        self.antithetic = mirrored
        super().__init__(x0, population, sigma, **keywords)
        if sigma_lr is None:
            sigma_lr = (3 + math.log(self.dimension)) / (5 * math.sqrt(self.dimension))
        self._lr = parse(lr, "lr")
        self._sigma_lr = parse(sigma_lr, "sigma_lr")
        self.shaping = shaping_named(shaping)
        self._scaled = shaping == "nes"

    @property
    def lr(self) -> float:
        return self._lr(self.generation)

    def update(self, fitness: Fitness) -> None:
        if (fitness == fitness[0]).all():
            return
        utilities = self.shaping(fitness)
        if not self._scaled:
            size = abs(utilities).sum()
            utilities = utilities / size if size > 0 else utilities
        first, second = self.moments(utilities)
        self.center += self.lr * self.deviations * first
        self.deviations = self.deviations * torch.exp(self._sigma_lr(self.generation) / 2 * second)
