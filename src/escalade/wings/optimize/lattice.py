"""Parameters that are whole numbers: which, within what, and how a search's numbers become them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from escalade.errors import InputError
from escalade.strategies.bounds import Bounds
from escalade.support.numbers import whole_number

Array = NDArray[np.float64]


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
    dimension = len(scale)
    try:
        given = np.asarray(integers)
    except ValueError:  # lists of several lengths
        raise InputError("integers must be a list of numbers of parameters, such as [0, 3]") from None
    if given.dtype == np.bool_:
        if given.shape != (dimension,):
            raise InputError(f"integers: a mask has one truth value for each of the {dimension} parameters")
        given = np.flatnonzero(given)
    if given.ndim != 1:
        raise InputError("integers must be a list of numbers of parameters, such as [0, 3]")
    places = [whole_number(place, "integers") for place in given.tolist()]
    wrong = [place for place in places if not 0 <= place < dimension]
    if wrong:
        raise InputError(f"integers: there is no parameter {wrong[0]}, but those from 0 to {dimension - 1}")
    numbers = np.array(sorted(set(places)), dtype=np.int64)
    lowest, highest = np.ceil(bounds.lower[numbers]), np.floor(bounds.upper[numbers])
    for place, low, high in zip(numbers, lowest, highest, strict=True):
        if high - low < 1:
            raise InputError(
                f"integers: the bounds of parameter {place} leave fewer than two whole numbers: widen them,"
                " or leave it out of the search"
            )
    return Lattice(numbers, lowest, highest, scale[numbers])
