"""xNES, the natural gradient on full Gaussians in exponential coordinates.

Glasmachers, Schaul, Sun, Wierstra, Schmidhuber 2010, "Exponential natural evolution strategies" (GECCO),
algorithm 1. The rates are those of Wierstra et al. 2014, "Natural evolution strategies", JMLR 15, table 1.
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np

from escalade.strategies.base import Common, Fitness
from escalade.strategies.matrix import MatrixStrategy
from escalade.strategies.schedules import Rate, parse
from escalade.strategies.shaping import nes_utilities
from escalade.strategies.sized import Matrix
from escalade.strategies.tensors import Start


class XNES(MatrixStrategy):
    """Follow the natural gradient of the center, the step size and the shape of the search.

    Members are ``center + sigma * B z`` with z standard normal and ``det B = 1``. With utilities ``u_i``
    and ``M = sum_i u_i * (z_i z_i' - I)``:

        ``center += lr * sigma * B sum_i u_i * z_i``
        ``sigma *= exp(sigma_lr / 2 * trace(M) / d)``
        ``B = B expm(shape_lr / 2 * (M - trace(M) / d * I))``

    Memory is O(dimension**2), and time O(dimension**3) a generation.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation, at least 4; None means ``4 + 3 * ln(dimension)``.
        sigma: initial step size.
        lr: learning rate of the center: a number, a schedule, or its text, as the next two.
        sigma_lr: learning rate of the step size's logarithm; None means the paper's
            ``(9 + 3 ln d) / (5 * d * sqrt(d))`` in d dimensions.
        shape_lr: learning rate of the shape; None means the same.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid, or the matrices would not fit in this host's memory.
    """

    def __init__(
        self,
        x0: Start,
        population: int | None = None,
        sigma: float | str = 0.5,
        *,
        lr: Rate = 1.0,
        sigma_lr: Rate | None = None,
        shape_lr: Rate | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(x0, population, sigma, **common)
        n = self.dimension
        usual = (9 + 3 * math.log(n)) / (5 * n * math.sqrt(n))
        self.lr_schedule = parse(lr, "lr", zero=True)
        self._sigma_lr = parse(usual if sigma_lr is None else sigma_lr, "sigma_lr", zero=True)
        self._shape_lr = parse(usual if shape_lr is None else shape_lr, "shape_lr", zero=True)

    def update(self, fitness: Fitness) -> None:
        lr, sigma_lr, shape_lr = self.lr, self._sigma_lr(self.generation), self._shape_lr(self.generation)
        n, identity, (z, y) = self.dimension, np.eye(self.dimension), self.draw()
        weights = nes_utilities(fitness)
        self.move(lr * (weights @ y))
        gradient = (z.T * weights) @ z - weights.sum() * identity
        of_sigma = float(np.trace(gradient)) / n
        with np.errstate(over="ignore", invalid="ignore"):  # tell() raises Diverged if sigma is infinite
            self.step_size *= float(np.exp(sigma_lr / 2 * of_sigma))
            self.matrix = self.matrix @ exponential(shape_lr / 2 * (gradient - of_sigma * identity))
        self.updates += 1


def exponential(symmetric: Matrix) -> Matrix:
    """Return the exponential of a symmetric matrix."""
    values, vectors = np.linalg.eigh(symmetric)
    return np.asarray((vectors * np.exp(values)) @ vectors.T)
