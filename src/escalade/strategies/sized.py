"""The base of strategies whose constants follow from dimension and population; members have no address."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from escalade.errors import InputError
from escalade.perturbation import DensePopulation
from escalade.perturbation.fresh import FreshDraws
from escalade.strategies.base import Common, Strategy
from escalade.strategies.schedules import parse
from escalade.strategies.tensors import Start, State

Matrix = NDArray[np.float64]


class SizedStrategy(Strategy):
    """A strategy with one step size that sets its constants once, for a population that has a usual size.

    Its members are ``centre + step_size * y``, where ``y`` is made of normal numbers, and are written out.

    Args:
        x0: the first centre, shape (dimension,).
        population: members a generation, at least 4; None means :meth:`usual_population`.
        sigma: the first step size.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is impossible; the message names it.
    """

    smallest = 4
    grows = False  # it weighs as many members as it began with
    draws_once = True
    adapted: ClassVar[tuple[str, ...]] = ("step_size", "updates")
    decomposes: ClassVar[bool] = False
    """True where :attr:`condition` takes a decomposition of a matrix."""

    def __init__(
        self, x0: Start, population: int | None = None, sigma: float | str = 0.5, **common: Unpack[Common]
    ) -> None:
        super().__init__(x0, population, **common)
        self.step_size = first_step_size(sigma)
        self.updates = 0
        self._drawn: tuple[int, Matrix, Matrix] | None = None
        self.drawn_count, self.drawn_width = self.population_size, self.dimension
        """The number of noise vectors in a generation, and of normal numbers in each of them."""
        self.begin(self.dimension, self.population_size)

    def begin(self, n: int, population: int) -> None:
        """Set constants and first state for ``n`` parameters. For subclasses."""

    @property
    def sigma(self) -> float:
        return float(np.mean(self.scale))

    @property
    @abstractmethod
    def scale(self) -> float | NDArray[np.floating]:
        """Standard deviation of the members: a number, or one per parameter, shape (dimension,)."""

    def narrow(self, factors: Matrix) -> None:
        """Multiply the step size by the smallest factor."""
        self.step_size *= float(factors.min())

    @abstractmethod
    def shaped(self, z: Matrix) -> Matrix:
        """Members' steps ``y``, shape (n, dimension), of noise ``z``, (n, drawn_width). For subclasses."""

    def draw(self) -> tuple[Matrix, Matrix]:
        """This generation's ``z`` and ``y``, float64: a row for each drawn noise."""
        if self._drawn is None or self._drawn[0] != self.generation:
            z = self.noise(self.drawn_count, self.generation)
            self._drawn = self.generation, z, self.shaped(z)
        return self._drawn[1:]

    def noise(self, count: int, generation: int) -> Matrix:
        """Standard normal numbers of the source, shape (count, drawn_width)."""
        draws = self.perturbation.draw(self.seed, generation, count, self.drawn_width)
        if isinstance(draws, FreshDraws):
            return draws.rows
        z = np.empty((count, self.drawn_width))
        for number, row in enumerate(z):
            draws.write(number, 1.0, row)
        return z

    def members(self) -> DensePopulation:
        center = self.center.numpy()
        return DensePopulation((center + self.step_size * self.draw()[1]).astype(center.dtype))

    def move(self, step: NDArray[np.float64]) -> None:
        """Add ``step_size * step``, shape (dimension,), to the centre."""
        self.center += torch.from_numpy(self.step_size * step).to(self.center)

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._drawn = None


def first_step_size(sigma: float | str) -> float:
    """The number that ``sigma`` is; InputError for a schedule, since the strategy adapts it."""
    try:
        return parse(float(sigma), "sigma")(0)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(
            f"sigma {sigma!r} must be a positive number: this strategy adapts it from there"
        ) from None
