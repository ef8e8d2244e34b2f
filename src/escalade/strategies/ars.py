"""Augmented Random Search (ARS).

Mania, Guy, Recht 2018, "Simple random search provides a competitive approach to reinforcement learning",
arXiv 1803.07055, algorithm 2.
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
"""Smallest spread of returns for a step: a smaller one is zero in float32, and its inverse infinite."""


class ARS(GaussianStrategy):
    """Step along the directions with the best returns, scaled by the standard deviation of these returns.

    A direction is ranked by the better of its two members.

    ``center += lr / (b * s) * sum over the b top directions of (r_plus - r_minus) * delta``,
    where ``s`` is the standard deviation of those 2b returns. V2's normalization of observations
    belongs to the policy, not to the strategy.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation, even: two for each direction.
        sigma: standard deviation of the noise: a number, a schedule, or its text.
        lr: the step size: a number, a schedule, or its text.
        top_directions: b, the number of directions that are used. None uses all of them, as V1 and V2 of the
            paper do; b below ``population // 2`` is V1-t and V2-t. In a generation of another size b changes
            in proportion.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
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
        top = directions if top_directions is None else whole_number(top_directions, "top_directions")
        if not 1 <= top <= directions:
            raise InputError(
                f"top_directions {top_directions} must be between 1 and {directions}, "
                f"half the population of {population}; change top_directions or the population"
            )
        self.sigma_schedule = parse_sigma(sigma)
        self.lr_schedule = parse(lr, "lr", zero=True)
        self.top_directions = top_directions

    def update(self, fitness: Fitness) -> None:
        pairs = fitness.reshape(-1, 2)
        best = pairs.max(axis=1)
        # Directions that tie with the last one are used too, because the order of ties is arbitrary.
        kept = best >= np.sort(best)[-self._top_count(len(best))]
        spread = pairs[kept].std()
        if spread < _LEAST_SPREAD:
            return
        weights = np.where(kept, differences(fitness), 0.0)
        factor = self.lr / (np.count_nonzero(kept) * spread)
        self.center += self.noise_sum(weights).mul_(factor)

    def _top_count(self, directions: int) -> int:
        if self.top_directions is None:
            return directions
        return max(1, round(self.top_directions * self.population_size / self.first_population))
