"""Bounds on parameters: a map from unbounded space onto the box, for any strategy.

The map is the identity except in a margin at each bound: there it is a parabola, then its mirror image.
It is smooth, so the search sees no kink. It is periodic, so a search that leaves the box comes back in.
Hansen's pycma uses this kind of transformation by default; ``benchmarks/optimize.md`` compares it with
reflection and clipping.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from escalade.errors import InputError
from escalade.strategies.base import Strategy
from escalade.strategies.tensors import detached

Array = NDArray[np.float64]


@runtime_checkable
class ScipyBounds(Protocol):
    """The attributes of ``scipy.optimize.Bounds`` that are read."""

    lb: Any
    ub: Any


BoundsLike: TypeAlias = (
    tuple[ArrayLike | None, ArrayLike | None] | Sequence[tuple[float | None, float | None]] | ScipyBounds
)
"""Lower and upper bound, each a number, a vector or None; or one pair of numbers per parameter."""

_LARGEST = 1e100  # largest finite bound, because the map squares distances
_MARGIN = 1 / 20  # of 1 + |bound|, as in pycma's BoundTransform; measured in benchmarks/optimize.md


class Bounds:
    """Lower and upper bounds of a vector.

    Args:
        bounds: ``(lower, upper)``, each a number or a vector of shape (dimension,); or one of scipy's forms:
            one pair ``(lower, upper)`` per parameter, or a ``scipy.optimize.Bounds``. For two parameters, a
            tuple of two lists or arrays is read as ``(lower, upper)``, and other nested numbers as pairs.
            None, also within a list or tuple, and infinity mean "unbounded".
        dimension: length of the vector.
        fixed: True to allow equal lower and upper bounds, which fix a parameter.

    Raises:
        InputError: the bounds do not fit the vector, leave no room between them, or are finite but beyond
            1e100.
    """

    def __init__(self, bounds: BoundsLike | None, dimension: int, *, fixed: bool = False) -> None:
        lower, upper = _pair(bounds, dimension)
        self.lower = _vector(lower, -np.inf, dimension)
        self.upper = _vector(upper, np.inf, dimension)
        wrong = ~(self.lower <= self.upper if fixed else self.lower < self.upper)
        for bound in (self.lower, self.upper):
            wrong |= (abs(bound) > _LARGEST) & np.isfinite(bound)
        for i in np.flatnonzero(wrong).tolist():
            low, high = float(self.lower[i]), float(self.upper[i])
            if not (low <= high if fixed else low < high):
                raise InputError(
                    f"bounds: parameter {i} has {low:g} and {high:g}, but the lower bound must be below the "
                    "upper one"
                )
            beyond = low if np.isfinite(low) and abs(low) > _LARGEST else high
            raise InputError(
                f"bounds: parameter {i} has {beyond:g}, beyond {_LARGEST:g}; use None for no bound"
            )
        self.both: NDArray[np.bool_] = np.isfinite(self.lower) & np.isfinite(self.upper)
        """Mask of the parameters with two bounds, shape (dimension,)."""
        self.any = bool((np.isfinite(self.lower) | np.isfinite(self.upper)).any())
        """True if any parameter has a bound."""
        self._low_margin, self._high_margin = (
            np.minimum(_MARGIN * (1 + np.where(np.isfinite(bound), abs(bound), 0)), self.width / 2)
            for bound in (self.lower, self.upper)
        )

    @property
    def width(self) -> Array:
        """Upper minus lower bound, shape (dimension,); infinite if a bound is missing."""
        return self.upper - self.lower

    def check(self, x: Array) -> None:
        """Raise InputError if ``x`` is outside the bounds."""
        outside = np.flatnonzero((x < self.lower) | (x > self.upper))
        if len(outside):
            i = int(outside[0])
            raise InputError(
                f"x0: parameter {i} is {x[i]:g}, outside its bounds {self.lower[i]:g} and {self.upper[i]:g}"
            )

    def apply(self, free: Array) -> Array:
        """Map points of unbounded space into the box, shape (..., dimension)."""
        if not self.any:
            return free
        x = self._fold(free)
        m, n = self._low_margin, self._high_margin
        with np.errstate(invalid="ignore"):
            low = self.lower + (x - self.lower + m) ** 2 / (4 * m)
            high = self.upper - (self.upper + n - x) ** 2 / (4 * n)
            bent = np.where(x < self.lower + m, low, np.where(x > self.upper - n, high, x))
        return np.clip(bent, self.lower, self.upper)  # rounding errors must not leave the box

    def invert(self, x: Array) -> Array:
        """Return the point nearest the box that :meth:`apply` maps to ``x``."""
        if not self.any:
            return x.copy()
        m, n = self._low_margin, self._high_margin
        with np.errstate(invalid="ignore"):
            low = self.lower - m + 2 * np.sqrt(m * np.maximum(x - self.lower, 0))
            high = self.upper + n - 2 * np.sqrt(n * np.maximum(self.upper - x, 0))
            return np.where(x < self.lower + m, low, np.where(x > self.upper - n, high, x))

    def _fold(self, free: Array) -> Array:
        """Reflect at the outer ends of the margins until all points are between them."""
        low, high = self.lower - self._low_margin, self.upper + self._high_margin
        with np.errstate(invalid="ignore"):
            span = high - low
            phase = np.mod(free - low, 2 * span)
            folded = low + np.where(phase > span, 2 * span - phase, phase)
        inside = (free >= low) & (free <= high)
        one_sided = np.where(free < low, 2 * low - free, np.where(free > high, 2 * high - free, free))
        return np.where(inside, free, np.where(self.both, folded, one_sided))


def confine(strategy: Strategy, widest: Array, narrowest: Array | float = 0.0) -> None:
    """Keep the strategy's standard deviations between ``narrowest`` and ``widest``, the width of its box.

    In a wider search the members are spread evenly over the box whatever its sigma, so sigma would never
    shrink again.
    """
    deviations = np.broadcast_to(strategy.scale, (strategy.dimension,))
    if ((deviations > widest) | (deviations < narrowest)).any():
        strategy.narrow(np.clip(deviations, narrowest, widest) / deviations)


def _pair(bounds: BoundsLike | None, dimension: int) -> tuple[Any, Any]:
    """Return lower and upper bounds of any of the accepted forms."""
    if bounds is None:
        return None, None
    if isinstance(bounds, ScipyBounds):
        return bounds.lb, bounds.ub
    parts: list[Any] = list(bounds) if hasattr(bounds, "__len__") else []
    if len(parts) == 2 and (dimension != 2 or np.ndim(parts[0]) == 0 or _is_pair_of_vectors(bounds)):
        return parts[0], parts[1]
    if len(parts) != dimension or any(np.shape(pair) != (2,) for pair in parts):
        raise InputError(f"bounds must be (lower, upper), or one pair for each of the {dimension} parameters")
    return [low for low, _ in parts], [high for _, high in parts]


def _is_pair_of_vectors(bounds: Any) -> bool:
    return isinstance(bounds, tuple) and not isinstance(bounds[0], tuple)


def _vector(bound: ArrayLike | None, none: float, dimension: int) -> Array:
    if isinstance(bound, list | tuple):  # numpy would convert None to NaN
        bound = [none if number is None else number for number in bound]
    try:
        found = np.array(none if bound is None else detached(bound), dtype=np.float64)
        vector = np.broadcast_to(found, (dimension,)).copy()
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(
            f"bounds must be (lower, upper), each a number or {dimension} of them: {bound!r} is neither"
        ) from None
    if np.isnan(vector).any():
        raise InputError("bounds must not be NaN")
    return vector
