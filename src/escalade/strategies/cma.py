"""CMA-ES, evolution with a full covariance matrix.

Hansen 2016, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772v2 (2023). The equations and the
default constants (its table 1) are numbered as there.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from escalade.errors import InputError
from escalade.strategies.base import Common, Fitness
from escalade.strategies.evolution_paths import damping, expected_norm, heaviside, moved, with_ties
from escalade.strategies.injected import InjectedStrategy
from escalade.strategies.matrix import refuse_if_too_large
from escalade.strategies.ranking import share_ties
from escalade.strategies.sized import Matrix
from escalade.strategies.tensors import Start, State, detached

_FLOOR = 1e-30  # smallest ratio of an eigenvalue of the covariance to the largest


class CMAES(InjectedStrategy):
    """Adapt the full covariance of the search, with active (negative) weights.

    Members are ``center + sigma * B D z`` where ``B D**2 B'`` is the covariance ``C``. They are stored as
    vectors, not as addresses of noise. Memory is O(dimension**2), and time O(dimension**3) per generation.
    For more than a few hundred parameters use :class:`~escalade.strategies.sep_cma.SepCMAES`.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation, at least 4; None means ``4 + 3 * ln(dimension)``.
        sigma: initial step size.
        covariance: initial covariance of the members divided by sigma squared, shape (dimension, dimension),
            symmetric and positive definite, with eigenvalues that differ by a factor of at most 1e30; None
            means the identity.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid, or the matrices would not fit in this host's memory.
    """

    adapted: ClassVar[tuple[str, ...]] = ("covariance", "path_sigma", "path_c")

    def __init__(
        self,
        x0: Start,
        population: int | None = None,
        sigma: float | str = 0.5,
        *,
        covariance: ArrayLike | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(x0, population, sigma, **common)
        n = self.dimension
        refuse_if_too_large(n, "full CMA-ES")
        self.covariance: Matrix = np.eye(n) if covariance is None else _validated(covariance, n)
        self.path_sigma, self.path_c = np.zeros(n), np.zeros(n)

    def begin(self, n: int, population: int) -> None:
        mu = population // 2
        raw = math.log((population + 1) / 2) - np.log(np.arange(1, population + 1))  # eq. 49
        self.mu_eff = raw[:mu].sum() ** 2 / (raw[:mu] ** 2).sum()
        mu_eff_minus = raw[mu:].sum() ** 2 / (raw[mu:] ** 2).sum()
        m = self.mu_eff
        self.c_sigma = (m + 2) / (n + m + 5)  # eq. 55
        self.d_sigma = damping(self.c_sigma, m, n)
        self.c_c = (4 + m / n) / (n + 4 + 2 * m / n)  # eq. 56
        self.c_1 = 2 / ((n + 1.3) ** 2 + m)  # eq. 57
        # eq. 58; the 1/4 is from the tutorial's second version (2023) and helps in few dimensions.
        self.c_mu = min(1 - self.c_1, 2 * (1 / 4 + m - 2 + 1 / m) / ((n + 2) ** 2 + m))
        least = min(  # eq. 50 to 52: limit of the sum of all negative weights
            1 + self.c_1 / self.c_mu,
            1 + 2 * mu_eff_minus / (m + 2),
            (1 - self.c_1 - self.c_mu) / (n * self.c_mu),
        )
        self.positive = np.maximum(raw, 0) / raw[raw > 0].sum()  # eq. 53, in order of rank
        self.negative = np.minimum(raw, 0) * (least / -raw[raw < 0].sum())
        self.chi = expected_norm(n)

    @cached_property
    def scale(self) -> Matrix:
        """Standard deviation of the members in each parameter, shape (dimension,)."""
        return np.asarray(self.step_size * np.sqrt(np.maximum(self.covariance.diagonal(), 0)))

    @property
    def condition(self) -> float:
        """The largest eigenvalue of the covariance over the smallest."""
        lengths = self._axes[1]
        return float((lengths.max() / lengths.min()) ** 2)

    @cached_property
    def _axes(self) -> tuple[Matrix, Matrix]:
        """Eigenvectors and square roots of the eigenvalues of the covariance, computed on first use."""
        values, vectors = np.linalg.eigh(self.covariance)
        return vectors, np.sqrt(np.maximum(values, _FLOOR * values[-1]))

    def _clear_cache(self) -> None:
        # After each change of the covariance or the step size.
        for name in ("scale", "_axes"):
            self.__dict__.pop(name, None)

    def narrow(self, factors: Matrix) -> None:
        self.covariance = np.outer(factors, factors) * self.covariance
        self.path_c = factors * self.path_c
        self._clear_cache()

    def shaped(self, z: Matrix) -> Matrix:
        basis, lengths = self._axes
        return np.asarray((z * lengths) @ basis.T)  # eq. 39

    def unshaped(self, y: Matrix) -> Matrix:
        basis, lengths = self._axes
        return np.asarray((y @ basis) / lengths)

    def update(self, fitness: Fitness) -> None:
        n = self.dimension
        basis, (z, y) = self._axes[0], self.draw()
        positive, negative = share_ties(self.positive, fitness), share_ties(self.negative, fitness)
        m = with_ties(self.mu_eff, self.positive, positive)
        step = positive @ y  # eq. 41
        self.move(step)  # eq. 42

        c = self.c_sigma
        whitened = basis @ (positive @ z)  # C^(-1/2) times the step
        self.path_sigma = moved(self.path_sigma, c, m, whitened)  # eq. 43
        length = float(np.linalg.norm(self.path_sigma))
        # eq. 44; the bound (Hansen 2011) is for injected points; samples do not reach it.
        self.step_size *= math.exp(min(1.0, c / self.d_sigma * (length / self.chi - 1)))

        self.updates += 1
        h_sigma = heaviside(length, c, self.updates, n)
        c = self.c_c
        self.path_c = moved(self.path_c, c, m, step, h_sigma)  # eq. 45
        weights = positive + negative * (n / ((z**2).sum(axis=1) + 1e-8))  # eq. 46
        delta_h = (1 - h_sigma) * c * (2 - c)
        keep = 1 + self.c_1 * delta_h - self.c_1 - self.c_mu * (positive + negative).sum()
        covariance = keep * self.covariance + self.c_1 * np.outer(self.path_c, self.path_c)
        covariance += self.c_mu * (y.T * weights) @ y  # eq. 47
        self.covariance = (covariance + covariance.T) / 2
        self._clear_cache()

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._clear_cache()


def _validated(covariance: ArrayLike, n: int) -> Matrix:
    """Return a copy of a user's covariance, or raise InputError if it is not a valid one of n parameters."""
    matrix = np.array(detached(covariance), dtype=np.float64)
    if matrix.shape != (n, n):
        raise InputError(f"covariance of shape {matrix.shape} must be of shape {(n, n)}")
    tolerance = 1e-8 * abs(matrix).max()
    symmetric = bool(np.isfinite(matrix).all()) and np.allclose(matrix, matrix.T, atol=tolerance)
    values = np.linalg.eigvalsh(matrix) if symmetric else np.zeros(n)
    if values[0] <= 0:
        raise InputError("covariance must be symmetric and positive definite")
    if values[0] < _FLOOR * values[-1]:
        raise InputError(
            f"covariance: eigenvalues from {values[0]:.0e} to {values[-1]:.0e}, too far apart for float64; "
            "change the parameters' units"
        )
    return np.asarray((matrix + matrix.T) / 2)
