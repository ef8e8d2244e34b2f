"""Covariance with a deviation for each parameter and one long axis: ``D (I + v v') D``.

VD-CMA (Akimoto, Auger and Hansen 2014) and CR-FM-NES (Nomura and Ono 2022) use it. Both follow the same
natural gradient, each with its own rates.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from escalade.strategies.sized import Matrix, SizedStrategy

Vector = NDArray[np.float64]

_FIRST_AXIS = 2**62  # generation number for the noise of the initial axis; no search reaches it
_SHORT = 1.0  # shorter axes may change as much as an axis of this length; pycma has no such minimum
_TINY = 1e-300


class AxisStrategy(SizedStrategy):
    """Strategy that adapts a step size and its shape, each along an evolution path of its own.

    ``axis`` is v and ``deviations`` the diagonal of D; both have shape (dimension,).

    The arguments and errors are those of :class:`SizedStrategy`.
    """

    adapted = ("axis", "deviations", "path_sigma", "path_c")

    def begin(self, n: int, population: int) -> None:
        self.axis: Vector = self.noise(1, _FIRST_AXIS)[0] / math.sqrt(n)
        self.deviations: Vector = np.ones(n)
        self.path_sigma, self.path_c = np.zeros(n), np.zeros(n)

    @property
    def length2(self) -> float:
        """Squared length of the axis."""
        return float(self.axis @ self.axis)

    @property
    def unit(self) -> Vector:
        """Direction of the axis, a unit vector."""
        return self.axis / math.sqrt(self.length2)

    @property
    def scale(self) -> Vector:
        """Standard deviation of the members in each parameter, shape (dimension,)."""
        return np.asarray(self.step_size * (self.deviations * np.sqrt(1 + self.axis**2)))

    def narrow(self, factors: Vector) -> None:
        common = float(np.exp(np.log(factors).mean()))  # CR-FM-NES normalizes its deviations
        self.step_size *= common
        self.deviations = factors / common * self.deviations
        self.path_c = factors / common * self.path_c

    def shaped(self, z: Matrix) -> Matrix:
        unit, longer = self.unit, math.sqrt(1 + self.length2) - 1
        return np.asarray((z + np.outer(longer * (z @ unit), unit)) * self.deviations)

    def gradient(self, z: Matrix, rates: Vector, path: Vector, path_rate: float) -> tuple[Vector, Vector]:
        """Return the steps of ``axis`` and, relative to their values, of ``deviations``.

        A member's gradient is quadratic in its step but linear in four terms of it. These terms are therefore
        summed over the members first (:meth:`_sums`), and the rest is computed once.

        ``unit`` is v / |v|, ``length2`` is |v|² and ``g`` is 1 + |v|². ``t`` and ``s`` become the gradients
        of v and of log D. ``alpha`` below 1 keeps the Fisher matrix invertible. ``inverse`` and ``scaled``
        invert this matrix, which is a diagonal matrix plus the outer product of one vector with itself.

        Args:
            z: noise of the members, shape (n, dimension).
            rates: learning rates of the members, shape (n,).
            path: an additional step, shape (dimension,), on the scale of the steps from :meth:`shaped`.
            path_rate: learning rate of ``path``.
        """
        length2, unit = self.length2, self.unit
        g, unit2 = 1 + length2, unit**2
        squares, products, inner, total = self._sums(z, rates, path / self.deviations, path_rate)
        alpha = min(1.0, math.sqrt(length2**2 + (2 * g - math.sqrt(g)) / float(unit2.max())) / (2 + length2))
        t = products - unit * (inner + g * total) / 2
        s = squares - length2 / g * unit * products - total
        s = s - alpha / g * ((2 + length2) * unit * t - length2 * unit2 * float(unit @ t))
        b = 2 * alpha**2 - (1 - alpha**2) * length2**2 / g
        inverse = 1 / (2 - (b + 2 * alpha**2) * unit2)
        scaled = inverse * unit2
        s = s * inverse - b / (1 + b * float(unit2 @ scaled)) * scaled * float(scaled @ s)
        t = t - alpha * ((2 + length2) * unit * s - unit * float(unit2 @ s))
        return t / math.sqrt(length2), s

    def cut(self, axis_step: Vector, s: Vector, most: float) -> tuple[Vector, Vector]:
        """Shorten both steps so that each deviation and the axis change by at most the fraction ``most``.

        The gradient holds only locally: in a valley far longer than wide, full steps along it diverge.
        """
        length = max(float(np.linalg.norm(axis_step)), _TINY)
        # In few dimensions the axis can nearly vanish; a limit relative to it would freeze the deviations.
        longest = most * max(math.sqrt(self.length2), _SHORT)
        share = min(1.0, longest / length, most / max(float(np.abs(s).max()), _TINY))
        return share * axis_step, share * s

    def _sums(
        self, z: Matrix, rates: Vector, path: Vector, path_rate: float
    ) -> tuple[Vector, Vector, float, float]:
        """Return the sums, weighted by rates, of ``y * y``, ``y (y' unit)``, ``(y' unit)**2`` and 1.

        They run over the members and the path.

        Here ``y = z + (stretch - 1) unit (unit' z)``.
        """
        unit, stretch = self.unit, math.sqrt(1 + self.length2)
        along, longer = z @ unit, stretch - 1
        of_products, of_along = (rates * along) @ z, float(rates @ along**2)
        squares = rates @ z**2 + 2 * longer * unit * of_products + longer**2 * of_along * unit**2
        products = stretch * (of_products + longer * of_along * unit)
        of_path = float(path @ unit)
        return (
            squares + path_rate * path**2,
            products + path_rate * of_path * path,
            stretch**2 * of_along + path_rate * of_path**2,
            float(rates.sum()) + path_rate,
        )
