"""Augmented Random Search: Mania, Guy, Recht 2018, "Simple random search provides a competitive
approach to reinforcement learning", arXiv 1803.07055, algorithm 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from escalade.errors import InputError
from escalade.strategies.base import Fitness, GaussianStrategy, differences
from escalade.strategies.schedules import Schedule, parse, parse_sigma


class ARS(GaussianStrategy):
    """Step along the directions whose better end was best, scaled by the spread of their returns.

    ``centre += lr / (b * s) * sum over the b top directions of (r_plus - r_minus) * delta``,
    where ``s`` is the standard deviation of those 2b returns. ``top`` is b; ``None`` keeps every
    direction (V1 and V2 of the paper; a smaller b is V1-t and V2-t). V2's normalisation of
    observations belongs to the policy, not to the strategy.
    """

    def __init__(
        self,
        x0: ArrayLike | Tensor,
        population: int = 64,
        sigma: float | str | Schedule = 0.03,
        *,
        lr: float | str | Schedule = 0.02,
        top: int | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(x0, population, **keywords)
        directions = population // 2
        if top is not None and not 1 <= top <= directions:
            raise InputError(
                f"top {top} must be between 1 and {directions}, half the population of {population}"
            )
        self._sigma = parse_sigma(sigma, "sigma")
        self._lr = parse(lr, "lr")
        self.top = top

    @property
    def sigma(self) -> float:
        return self._sigma(self.generation)

    @property
    def lr(self) -> float:
        return self._lr(self.generation)

    def update(self, fitness: Fitness) -> None:
        pairs = fitness.reshape(-1, 2)
        best = pairs.max(axis=1)
        # Directions that tie with the last one in are kept too: their order means nothing.
        kept = best >= np.sort(best)[-(self.top or len(best))]
        spread = pairs[kept].std()
        if spread == 0:
            return
        weights = np.where(kept, differences(fitness), 0.0)
        self.center += self.noise_sum(weights) * (self.lr / (np.count_nonzero(kept) * spread))
