"""The base of written strategies whose constants follow from the dimension and the population."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from escalade.perturbation import NoiseSource
from escalade.strategies.base import Direction
from escalade.strategies.vectors import first_center
from escalade.strategies.written import WrittenStrategy
from escalade.support.numbers import population_number


class SizedStrategy(WrittenStrategy):
    """A written strategy that sets its constants once, for a population that has a usual size.

    Args:
        x0: the first centre, shape (dimension,).
        population: members a generation, at least 4; None means :meth:`usual_population`.
        sigma: the first step size.
        seed: the same seed gives the same members.
        direction: what the fitness is to become, ``maximize`` or ``minimize``.
        perturbation: the source of the noise; a table of noise made from ``seed`` when not given.

    Raises:
        InputError: an argument is impossible; the message names it.
    """

    decomposes: ClassVar[bool] = False
    """True where :attr:`condition` takes a decomposition of a matrix."""

    def __init__(
        self,
        x0: ArrayLike | Tensor,
        population: int | None = None,
        sigma: float | str = 0.5,
        *,
        seed: int = 0,
        direction: Direction = "maximize",
        perturbation: NoiseSource | None = None,
    ) -> None:
        n = first_center(x0).numel()
        population = check_population(self.usual_population(n) if population is None else population)
        super().__init__(x0, population, sigma, seed=seed, direction=direction, perturbation=perturbation)
        self.begin(n, population)

    @staticmethod
    def usual_population(dimension: int) -> int:
        """The number of members where none is given."""
        return default_population(dimension)

    def begin(self, n: int, population: int) -> None:
        """Set constants and first state for ``n`` parameters. For subclasses."""

    @property
    def sigma(self) -> float:
        return float(np.mean(self.scale))

    @property
    @abstractmethod
    def scale(self) -> float | NDArray[np.floating]:
        """Standard deviation of the members: a number, or one per parameter, shape (dimension,)."""


def default_population(dimension: int) -> int:
    """``4 + 3 * ln(dimension)`` members: Hansen 2016, arXiv 1604.00772v2, equation 48."""
    return 4 + int(3 * math.log(dimension)) if dimension else 4


def check_population(population: int) -> int:
    """Return ``population``, or raise InputError where the constants have no meaning."""
    return population_number(population, 4)
