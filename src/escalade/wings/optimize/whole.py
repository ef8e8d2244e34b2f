"""Parameters that are whole numbers: what a search has at their places is rounded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from escalade.errors import InputError
from escalade.strategies.bounds import Bounds
from escalade.support.numbers import whole_number


def whole_places(integers: Sequence[int] | NDArray[np.generic], bounds: Bounds) -> NDArray[np.int64]:
    """The numbers of the parameters ``integers``, numbers or a mask, of a vector with these bounds.

    Raises:
        InputError: they are no parameters of the vector, or leave fewer than two whole numbers.
    """
    given, dimension = np.asarray(integers), len(bounds.lower)
    mask = given.dtype == np.bool_
    if given.ndim != 1 or (mask and len(given) != dimension):
        raise InputError(
            "integers must be numbers of parameters, such as [0, 3], or one truth value for each of the "
            f"{dimension} parameters"
        )
    numbers = np.flatnonzero(given) if mask else given
    places = {whole_number(place, "integers") for place in numbers.tolist()}
    if wrong := [place for place in places if not 0 <= place < dimension]:
        raise InputError(f"integers: there is no parameter {wrong[0]}, but those from 0 to {dimension - 1}")
    found = np.array(sorted(places), dtype=np.int64)
    narrow = found[np.floor(bounds.upper[found]) - np.ceil(bounds.lower[found]) < 1]
    if len(narrow):
        raise InputError(
            f"integers: the bounds of parameter {narrow[0]} leave fewer than two whole numbers: widen them, "
            "or leave it out of the search"
        )
    return found


def cells(bounds: Bounds, places: NDArray[np.int64]) -> Bounds:
    """The bounds of the numbers that are rounded, so that each whole one has as much room as any other."""
    lower, upper = bounds.lower.copy(), bounds.upper.copy()
    lower[places], upper[places] = np.ceil(lower[places]) - 0.5, np.floor(upper[places]) + 0.5
    return Bounds((lower, upper), len(lower))


def rounded(points: NDArray[np.float64], bounds: Bounds, places: NDArray[np.int64]) -> NDArray[np.float64]:
    """``points``, shape (..., dimension), with whole numbers within the bounds at ``places``."""
    found = points.copy()
    lowest, highest = np.ceil(bounds.lower[places]), np.floor(bounds.upper[places])
    found[..., places] = np.clip(np.rint(points[..., places]), lowest, highest)
    return found
