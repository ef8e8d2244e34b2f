"""Base class of strategies whose constants depend on dimension and population."""

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
    """A strategy with one step size, a default population, and constants that are computed once.

    Its members are ``center + step_size * y``, where ``y`` is computed from normal numbers. They are stored
    as vectors, not as addresses of noise.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation, at least 4; None means :meth:`usual_population`.
        sigma: initial step size.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
    """

    smallest = 4
    grows = False  # the weights are made for a fixed number of members
    draws_once = True
    adapted: ClassVar[tuple[str, ...]] = ("step_size", "updates")
    decomposes: ClassVar[bool] = False
    """True if :attr:`condition` needs the decomposition of a matrix."""

    def __init__(
        self, x0: Start, population: int | None = None, sigma: float | str = 0.5, **common: Unpack[Common]
    ) -> None:
        super().__init__(x0, population, **common)
        self.step_size = first_step_size(sigma)
        self.updates = 0
        self._drawn: tuple[int, Matrix, Matrix] | None = None
        self.drawn_count, self.drawn_width = self.population_size, self.dimension
        """Number of noise vectors per generation, and number of normal numbers in each of them."""
        self.begin(self.dimension, self.population_size)

    def begin(self, n: int, population: int) -> None:
        """Compute constants and initial state for ``n`` parameters. Subclasses may override this."""

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
        """Return the steps ``y``, shape (n, dimension), for noise ``z``, shape (n, drawn_width).

        Subclasses implement this.
        """

    def draw(self) -> tuple[Matrix, Matrix]:
        """Return this generation's ``z`` and ``y``, float64, one row per noise vector."""
        if self._drawn is None or self._drawn[0] != self.generation:
            z = self.noise(self.drawn_count, self.generation)
            self._drawn = self.generation, z, self.shaped(z)
        return self._drawn[1:]

    def noise(self, count: int, generation: int) -> Matrix:
        """Draw standard normal numbers from the noise source, shape (count, drawn_width)."""
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
        """Add ``step_size * step``, shape (dimension,), to the center."""
        self.center += torch.from_numpy(self.step_size * step).to(self.center)

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._drawn = None


def first_step_size(sigma: float | str) -> float:
    """Return ``sigma`` as a number, or raise InputError for a schedule, because the strategy adapts sigma."""
    try:
        return parse(float(sigma), "sigma")(0)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(
            f"sigma {sigma!r} must be a positive number: the initial value, which this strategy adapts"
        ) from None
