"""CMA-ES with margin: Hamano, Saito, Nomura and Shirakawa 2022, "CMA-ES with margin: lower-bounding marginal
probability for mixed-integer black-box optimization", arXiv 2205.13482, sections 4.2 and 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from escalade.errors import InputError
from escalade.perturbation import DensePopulation
from escalade.strategies.base import Common, Fitness
from escalade.strategies.bounds import Bounds
from escalade.strategies.cma import CMAES
from escalade.support.numbers import whole_number

Array = NDArray[np.float64]

_NORMAL = NormalDist()
_SMALLEST = 1e-10  # of a probability, as no quantile of 0 is finite


@dataclass(frozen=True)
class Lattice:
    """The parameters ``places`` of a vector are whole numbers from ``lowest`` to ``highest``, shape (k,) all.

    ``scale``, shape (k,), is what a search's own numbers are multiplied with to become these.
    """

    places: NDArray[np.int64]
    lowest: Array
    highest: Array
    scale: Array

    def round(self, points: Array) -> Array:
        """``points``, shape (..., dimension), with whole numbers at the places; a half goes down."""
        rounded = points.copy()
        whole = np.ceil(points[..., self.places] - 0.5)
        rounded[..., self.places] = np.clip(whole, self.lowest, self.highest)
        return rounded

    def limits(self, center: Array) -> tuple[Array, Array]:
        """The two numbers of the search between which the nearest whole number to ``center`` is had.

        Both are the nearest limit there is where that is the lowest or the highest of all.
        """
        nearest = np.clip(np.ceil(center * self.scale - 0.5), self.lowest, self.highest)
        below = np.clip(nearest - 0.5, self.lowest + 0.5, self.highest - 0.5)
        above = np.clip(nearest + 0.5, self.lowest + 0.5, self.highest - 0.5)
        return below / self.scale, above / self.scale


def lattice_of(integers: Sequence[int] | NDArray[np.generic], bounds: Bounds, scale: Array) -> Lattice:
    """The lattice of the parameters ``integers``, numbers or a mask, of a vector with these bounds.

    Raises:
        InputError: they are no parameters of the vector, or leave fewer than two whole numbers.
    """
    given = np.asarray(integers)
    mask = given.dtype == np.bool_
    if given.ndim != 1 or (mask and len(given) != len(scale)):
        raise InputError(
            "integers must be numbers of parameters, such as [0, 3], or one truth value for each of the "
            f"{len(scale)} parameters"
        )
    places = {
        whole_number(place, "integers") for place in (np.flatnonzero(given) if mask else given).tolist()
    }
    wrong = [place for place in places if not 0 <= place < len(scale)]
    if wrong:
        raise InputError(f"integers: there is no parameter {wrong[0]}, but those from 0 to {len(scale) - 1}")
    numbers = np.array(sorted(places), dtype=np.int64)
    lowest, highest = np.ceil(bounds.lower[numbers]), np.floor(bounds.upper[numbers])
    narrow = numbers[highest - lowest < 1]
    if len(narrow):
        raise InputError(
            f"integers: the bounds of parameter {narrow[0]} leave fewer than two whole numbers: widen them, "
            "or leave it out of the search"
        )
    return Lattice(numbers, lowest, highest, scale[numbers])


class MarginCMAES(CMAES):
    """CMA-ES for vectors of which some parameters are rounded to whole numbers.

    A step size below 1 would have all members round to the same number, and nothing would be learnt of
    the others. So each whole parameter has a ``width`` of its own, by which its steps are longer; and after
    each update centre and width are moved by as little as it takes for other numbers than the nearest to be
    drawn with a probability of ``1 / (dimension * population)``. So they are before the first generation,
    too, which is not in the paper.

    Args:
        x0: the first centre, shape (dimension,).
        population: members a generation, at least 4; None means ``4 + 3 * ln(dimension)``.
        sigma: the first step size.
        lattice: the parameters that are rounded. Members are not rounded yet: :meth:`Lattice.round` does it.
        covariance: the first covariance, as in :class:`~escalade.strategies.cma.CMAES`.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`~escalade.strategies.base.Strategy`.

    Raises:
        InputError: an argument is impossible, or the matrices would not fit in this host's memory.
    """

    adapted = ("widths",)

    def __init__(
        self,
        x0: ArrayLike | Tensor,
        population: int | None = None,
        sigma: float | str = 0.5,
        *,
        lattice: Lattice,
        covariance: ArrayLike | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(x0, population, sigma, covariance=covariance, **common)
        self.lattice = lattice
        self.margin = 1 / (self.dimension * self.population_size)
        self.widths: Array = np.ones(len(lattice.places))
        self._keep_margin()

    @property
    def scale(self) -> Array:
        scale = super().scale.copy()
        scale[self.lattice.places] *= self.widths
        return scale

    def members(self) -> DensePopulation:
        steps = self.step_size * self.draw()[1]
        steps[:, self.lattice.places] *= self.widths
        center = self.center.numpy()
        return DensePopulation((center + steps).astype(center.dtype))

    def update(self, fitness: Fitness) -> None:
        super().update(fitness)
        self._keep_margin()

    def _keep_margin(self) -> None:
        """Move and widen, so that another whole number than the centre's has its chance in each place."""
        places = self.lattice.places
        center, deviations = self.center.numpy()[places].astype(np.float64), self.scale[places]
        below, above = self.lattice.limits(center)
        moved, widths = center.copy(), self.widths.copy()
        for i, (m, s, low, high) in enumerate(zip(center, deviations, below, above, strict=True)):
            left, right = _NORMAL.cdf((low - m) / s), 1 - _NORMAL.cdf((high - m) / s)
            if low == high or max(left, right) > 0.5:
                moved[i] = self._edge(m, s, high, min(left, right))
            else:
                moved[i], factor = self._between(s, low, high, left, right)
                widths[i] *= factor
        self.widths = widths
        self.center[torch.from_numpy(places)] = torch.from_numpy(moved).to(self.center)

    def _edge(self, m: float, s: float, limit: float, beyond: float) -> float:
        """The centre at the lowest or the highest number: as far from the one limit as it may be."""
        if beyond >= self.margin:
            return m
        reach = -_NORMAL.inv_cdf(self.margin) * s
        return limit + (reach if m > limit else -reach)

    def _between(self, s: float, low: float, high: float, left: float, right: float) -> tuple[float, float]:
        """The centre between two limits, and by what to widen: half of the margin is beyond each."""
        half = self.margin / 2
        inside = 1 - left - right
        left, right = max(left, half), max(right, half)
        excess = (1 - left - right - inside) / (left + right + inside - 3 * half)
        left, right = left + excess * (left - half), right + excess * (right - half)
        to_left = -_NORMAL.inv_cdf(min(max(left, _SMALLEST), 0.5 - _SMALLEST))
        to_right = -_NORMAL.inv_cdf(min(max(right, _SMALLEST), 0.5 - _SMALLEST))
        both = to_left + to_right
        return (low * to_right + high * to_left) / both, (high - low) / (both * s)
