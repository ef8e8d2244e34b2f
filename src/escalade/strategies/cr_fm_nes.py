"""CR-FM-NES, whose covariance is ``D (I + v v') D`` with a diagonal D and a vector v.

Nomura and Ono 2022, "Fast moving natural evolution strategy for high-dimensional problems", arXiv 2201.11422,
algorithm 1.
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np

from escalade.errors import Diverged, InputError
from escalade.perturbation import DensePopulation
from escalade.strategies.axis_shape import AxisStrategy, Vector
from escalade.strategies.base import Common, Fitness
from escalade.strategies.evolution_paths import expected_norm, moved, mu_eff_of, with_ties
from escalade.strategies.gaussian import differences, sums
from escalade.strategies.ranking import default_population, share_ties
from escalade.strategies.sized import Matrix
from escalade.strategies.tensors import Start
from escalade.support.numbers import real_number

_LONGEST = 1e16  # squared length of the axis; beyond this float64 loses all other directions


class CRFMNES(AxisStrategy):
    """Adapt a step size, a deviation for each parameter, and one axis along which the search is longer.

    Members are ``center +- step_size * deviations * y`` in mirrored pairs, with ``y`` of covariance
    ``I + axis axis'``. While the search moves, members farther from the center have larger weights, and the
    step size adapts faster. Unlike the paper, the learning rate of the path is 0 below 5 dimensions. Time and
    memory are O(dimension) per member.

    In a rotated valley a thousand times longer than wide, the paper's steps of the shape diverge within
    hundreds of generations; with ``max_change=0.7`` they do not (``benchmarks/strategies.md``).

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation, even and at least 4; None means ``4 + 3 * ln(dimension)``, or one
            more.
        sigma: initial step size.
        max_change: largest change of the axis and of each deviation in a generation, as a fraction of its
            value; None means no limit, as in the paper.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
    """

    def __init__(
        self,
        x0: Start,
        population: int | None = None,
        sigma: float | str = 0.5,
        *,
        max_change: float | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(x0, population, sigma, **common)
        if max_change is not None and not 0 < real_number(max_change, "max_change") < 1:
            raise InputError(f"max_change {max_change} must be between 0 and 1")
        self.max_change = max_change

    antithetic = True

    @staticmethod
    def usual_population(dimension: int) -> int:
        """Return the usual size, rounded up to an even number because members come in pairs."""
        usual = default_population(dimension)
        return usual + usual % 2

    def begin(self, n: int, population: int) -> None:
        super().begin(n, population)
        self.drawn_count = population // 2  # pairs
        ranks = np.arange(1, population + 1)
        self.positive = np.maximum(0.0, math.log(population / 2 + 1) - np.log(ranks))  # w hat, not normalized
        self.share = self.positive / self.positive.sum()
        self.by_rank = self.share - 1 / population
        m = self.mu_eff = mu_eff_of(self.share)
        self.c_sigma = (m + 2) / (n + m + 5)
        self.c_c = (4 + m / n) / (n + 4 + 2 * m / n)
        # Below 5 dimensions the paper's c_1 is negative; it and the authors' code diverge with 40 members.
        self.c_1 = max(0.0, (n - 5) / 6 * 2 / ((n + 1.3) ** 2 + m))
        self.distance = _distance_rate(n) * min(1.0, math.sqrt(population / n))
        self.lr_shape = math.tanh((min(0.02 * population, 3 * math.log(n)) + 5) / (0.23 * n + 25))
        self.lr_stagnating = math.tanh((0.024 * population + 0.7 * n + 20) / (n + 12))
        self.lr_converging = 2 * math.tanh((0.025 * population + 0.75 * n + 10) / (n + 4))

    def members(self) -> DensePopulation:
        center, steps = self.center.numpy(), self.step_size * self.draw()[1]
        pairs = np.stack([center + steps, center - steps], axis=1)
        vectors = pairs.reshape(self.population_size, -1).astype(center.dtype)
        return DensePopulation(vectors, antithetic=True)

    def update(self, fitness: Fitness) -> None:
        z, y = self.draw()
        by_rank = share_ties(self.by_rank, fitness)
        m = with_ties(self.mu_eff, self.share, share_ties(self.share, fitness))
        self.path_sigma = moved(self.path_sigma, self.c_sigma, m, differences(by_rank) @ z)
        squared = (z**2).sum(axis=1)
        weights, lr_sigma = self._weights(by_rank, fitness, squared)
        step = differences(weights) @ y
        self.path_c = moved(self.path_c, self.c_c, m, step)
        self._learn_shape(z, weights)
        self.move(step)
        of_pairs = sums(weights)
        change = float(of_pairs @ squared) / self.dimension - float(of_pairs.sum())
        self.step_size *= math.exp(lr_sigma / 2 * change)
        self.updates += 1

    def _weights(self, by_rank: Vector, fitness: Fitness, squared: Vector) -> tuple[Vector, float]:
        """Return the members' weights and the step size's learning rate, by the length of the path."""
        length, usual = float(np.linalg.norm(self.path_sigma)), expected_norm(self.dimension)
        if length < usual:
            return by_rank, self.lr_stagnating if length >= 0.1 * usual else self.lr_converging
        farther = np.exp(self.distance * np.sqrt(squared)).repeat(2)
        weights = share_ties(self.positive, fitness) * farther
        return weights / weights.sum() - 1 / len(weights), 1.0

    def _learn_shape(self, z: Matrix, weights: Vector) -> None:
        rates = self.lr_shape * sums(weights)
        axis_step, s = self.gradient(z, rates, self.path_c, self.c_1)
        if self.max_change is not None:
            axis_step, s = self.cut(axis_step, s, self.max_change)
        axis, deviations = self.axis + axis_step, self.deviations * (1 + s)
        length2 = float(axis @ axis)
        if not (length2 < _LONGEST and (deviations > 0).all()):
            raise Diverged(
                f"generation {self.generation + 1} takes the shape of the search beyond the range of "
                "float64; use max_change=0.7"
            )
        self.axis = axis
        longer = math.log1p(length2) / (2 * self.dimension)
        self.deviations = deviations / math.exp(float(np.log(deviations).mean()) + longer)


def _distance_rate(n: int) -> float:
    """Solve ``(1 + a**2) * exp(a**2 / 2) / 0.24 = 10 + n`` for a, by bisection."""
    low, high = 0.0, 20.0
    for _ in range(100):
        middle = (low + high) / 2
        below = (1 + middle**2) * math.exp(middle**2 / 2) / 0.24 < 10 + n
        low, high = (middle, high) if below else (low, middle)
    return low
