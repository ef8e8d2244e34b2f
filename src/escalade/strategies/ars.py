"""Augmented Random Search: Mania, Guy, Recht 2018, "Simple random search provides a competitive
approach to reinforcement learning", arXiv 1803.07055, algorithm 2.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np

from escalade.errors import InputError
from escalade.strategies.base import Common, Fitness
from escalade.strategies.gaussian import GaussianStrategy, differences
from escalade.strategies.schedules import Rate, parse, parse_sigma
from escalade.strategies.tensors import Start
from escalade.support.numbers import whole_number

_LEAST_SPREAD = np.finfo(np.float32).tiny
"""Least spread of returns for a step: a smaller one is zero in the noise's type, and its inverse infinite."""


class ARS(GaussianStrategy):
    """Step along the directions whose better end was best, scaled by the spread of their returns.

    ``centre += lr / (b * s) * sum over the b top directions of (r_plus - r_minus) * delta``,
    where ``s`` is the standard deviation of those 2b returns. V2's normalisation of observations
    belongs to the policy, not to the strategy.

    Args:
        x0: the first centre, shape (dimension,).
        population: members a generation, even: two for each direction.
        sigma: standard deviation of the noise: a number, a schedule, or the text of one.
        lr: the step size: a number, a schedule, or the text of one.
        top_directions: b, the directions that are kept. ``None`` keeps all of them, as V1 and V2 of the paper
            do; a smaller b than ``population // 2`` is V1-t and V2-t. A generation of another size keeps as
            many in proportion.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is impossible; the message names it.
    """

    low_rank = True

    def __init__(
        self,
        x0: Start,
        population: int = 64,
        sigma: Rate = 0.1,
        *,
        lr: Rate = 0.1,
        top_directions: int | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(x0, population, **common)
        directions = population // 2
        kept = directions if top_directions is None else whole_number(top_directions, "top_directions")
        if not 1 <= kept <= directions:
            raise InputError(
                f"top_directions {top_directions} must be between 1 and {directions}, "
                f"half the population of {population}: give other top_directions, or another population"
            )
        self.sigma_schedule = parse_sigma(sigma)
        self.lr_schedule = parse(lr, "lr", zero=True)
        self.top_directions = top_directions

    def update(self, fitness: Fitness) -> None:
        pairs = fitness.reshape(-1, 2)
        best = pairs.max(axis=1)
        # Directions that tie with the last one in are kept too: their order means nothing.
        kept = best >= np.sort(best)[-self._kept(len(best))]
        spread = pairs[kept].std()
        if spread < _LEAST_SPREAD:
            return
        weights = np.where(kept, differences(fitness), 0.0)
        factor = self.lr / (np.count_nonzero(kept) * spread)
        self.center += self.noise_sum(weights).mul_(factor)

    def _kept(self, directions: int) -> int:
        """The number of a generation's directions that move the centre."""
        if self.top_directions is None:
            return directions
        return max(1, round(self.top_directions * self.population_size / self.first_population))
