"""Simple Gaussian evolution strategy: the (mu/mu, lambda) scheme of Rechenberg 1973 and Schwefel 1977
(Beyer and Schwefel 2002, "Evolution strategies: a comprehensive introduction"), its step size
estimated from the elite (Hansen 2016, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772,
section 3.1, on the diagonal).
"""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from escalade.strategies.adaptive import AdaptiveStrategy, elite_count, elite_weights
from escalade.strategies.base import Fitness
from escalade.strategies.schedules import Schedule, parse


class SimpleGaussian(AdaptiveStrategy):
    """Move to the mean of the elite, and towards the spread of the elite's steps.

    With the mean taken over the best fraction ``elite`` of members ``x_i``:

        ``centre += lr * mean(x_i - centre)``
        ``sigma += sigma_lr * (sqrt(mean((x_i - old centre)**2)) - sigma)``

    Deviations are taken about the old centre, so that they measure the elite's steps: they grow
    along a slope, where those of :class:`~escalade.strategies.cem.CEM` shrink.
    """

    antithetic = False

    def __init__(
        self,
        x0: ArrayLike | Tensor,
        population: int = 64,
        sigma: float | str | ArrayLike | Tensor = 0.1,
        *,
        elite: float = 0.5,
        lr: float | str | Schedule = 1.0,
        sigma_lr: float | str | Schedule = 0.1,
        **keywords: Any,
    ) -> None:
        super().__init__(x0, population, sigma, **keywords)
        self.elites = elite_count(elite, population)
        self._lr = parse(lr, "lr")
        self._sigma_lr = parse(sigma_lr, "sigma_lr")

    @property
    def lr(self) -> float:
        return self._lr(self.generation)

    def update(self, fitness: Fitness) -> None:
        if (fitness == fitness[0]).all():
            return
        weights = elite_weights(fitness, self.elites)
        step, spread = self.noise_sum(weights), torch.sqrt(self.square_sum(weights))
        self.center += self.lr * self.deviations * step
        self.deviations = self.deviations * (1 + self._sigma_lr(self.generation) * (spread - 1))
