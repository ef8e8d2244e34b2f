"""Rm-ES, whose covariance has a few long axes; with one path it is R1-ES.

Li and Zhang 2018, "A simple yet efficient evolution strategy for large-scale black-box optimization", IEEE
Transactions on Evolutionary Computation 22(5), algorithms 2 and 3.
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from escalade.strategies.base import Common, Fitness
from escalade.strategies.evolution_paths import moved, mu_eff_of, with_ties
from escalade.strategies.ranking import log_weights, ranks, share_ties
from escalade.strategies.sized import Matrix, SizedStrategy
from escalade.strategies.tensors import Start
from escalade.support.numbers import whole_number

_TARGET = 0.3  # q*: target of the normalized rise of the parents' ranks
_RATE = 0.3  # c_s


class RMES(SizedStrategy):
    """Search farther along a few stored paths of the center, and adapt the step size by ranks.

    With ``c = 1 / (3 * sqrt(dimension) + 5)`` and the paths ``p_1`` (the oldest) to ``p_m``, members have the
    covariance ``(1 - c)**m * I + c * sum_i (1 - c)**(m - i) * p_i p_i'``. The step size grows if this
    generation's better half outranks the last one's. Time and memory are O(dimension) per member.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation, at least 4; None means ``4 + 3 * ln(dimension)``.
        sigma: initial step size.
        paths: number of stored paths (m). A new path replaces the oldest or, if two neighbors are at most
            ``dimension`` generations apart, the later one of the closest two.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
    """

    adapted = ("paths", "ages", "path", "parents", "success")
    compares_generations = True

    def __init__(
        self,
        x0: Start,
        population: int | None = None,
        sigma: float | str = 0.5,
        *,
        paths: int = 2,
        **common: Unpack[Common],
    ) -> None:
        count = whole_number(paths, "paths", least=1)
        super().__init__(x0, population, sigma, **common)
        n = self.dimension
        self.drawn_width = n + count
        self.weights = log_weights(self.population_size)
        self.mu_eff = mu_eff_of(self.weights)
        self.c_cov = 1 / (3 * math.sqrt(n) + 5)
        self.c_c = 2 / (n + 7)
        self.decay = (1 - self.c_cov) ** (np.arange(count - 1, -1, -1) / 2)
        self.paths: Matrix = np.zeros((count, n))
        self.ages: NDArray[np.float64] = np.zeros(count)  # generation in which each path was stored
        self.path = np.zeros(n)
        self.parents: NDArray[np.float64] = np.zeros(0)  # fitness of the last better half, best first
        self.success = 0.0

    @property
    def scale(self) -> NDArray[np.float64]:
        """Standard deviation of the members in each parameter, shape (dimension,)."""
        own = (1 - self.c_cov) ** len(self.paths)
        return np.asarray(self.step_size * np.sqrt(own + self.c_cov * self.decay**2 @ self.paths**2))

    def shaped(self, z: Matrix) -> Matrix:
        # The last numbers of a member's noise are its coefficients along the paths.
        own, along = z[:, : self.dimension], z[:, self.dimension :]
        along = math.sqrt(self.c_cov) * self.decay * along
        return np.asarray((1 - self.c_cov) ** (len(self.paths) / 2) * own + along @ self.paths)

    def update(self, fitness: Fitness) -> None:
        weights = share_ties(self.weights, fitness)
        step = weights @ self.draw()[1]
        self.move(step)
        self.path = moved(self.path, self.c_c, with_ties(self.mu_eff, self.weights, weights), step)
        self._store_path()
        self._adapt_step_size(np.sort(fitness)[::-1][: self.population_size // 2])
        self.updates += 1

    def _store_path(self) -> None:
        """Replace one stored path, and append the new one (algorithm 2)."""
        gaps = np.diff(self.ages)
        full = self.updates >= len(self.paths)
        gone = int(gaps.argmin()) + 1 if full and len(gaps) and gaps.min() <= self.dimension else 0
        self.paths = np.vstack([np.delete(self.paths, gone, axis=0), self.path])
        self.ages = np.append(np.delete(self.ages, gone), float(self.updates))

    def _adapt_step_size(self, parents: NDArray[np.float64]) -> None:
        """Adapt the step size by the ranks of the last two better halves among each other (section III-C).

        Equal values share the mean of their ranks.
        """
        if len(self.parents):
            both = ranks(np.concatenate([self.parents, parents]))
            gained = both[len(parents) :] - both[: len(parents)]
            q = float(self.weights[: len(parents)] @ gained) / len(parents)
            self.success = (1 - _RATE) * self.success + _RATE * (q - _TARGET)
            self.step_size *= math.exp(self.success)
        self.parents = parents
