"""Bounds on parameters: a map from all of space onto the box, which any strategy can search through.

The map is the identity but for a margin at each bound, where it bends: a parabola, then its mirror image.
It is smooth, so the search sees no kink, and periodic, so a search that walks out comes back in. This is
the kind of transformation that Hansen's pycma uses by default; ``benchmarks/optimize.md`` compares it
with reflection and with clipping.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from escalade.errors import InputError

Array = NDArray[np.float64]
Pair = tuple[ArrayLike | None, ArrayLike | None]
"""Lower and upper bound, each a number, a vector or None."""

_MARGIN = 1 / 20  # of 1 + |bound|, as in pycma's BoundTransform: measured in benchmarks/optimize.md


class Bounds:
    """Lower and upper bounds of a vector.

    Args:
        bounds: ``(lower, upper)``, each a number or a vector of shape (dimension,); ``None`` or an
            infinite number is no bound.
        dimension: length of the vector.

    Raises:
        InputError: they do not fit the vector, or leave no room between them.
    """

    def __init__(self, bounds: Pair | None, dimension: int) -> None:
        lower, upper = _pair(bounds)
        self.lower = _vector(lower, -np.inf, dimension)
        self.upper = _vector(upper, np.inf, dimension)
        if not (self.lower < self.upper).all():
            i = int(np.flatnonzero(~(self.lower < self.upper))[0])
            raise InputError(
                f"bounds: parameter {i} has {self.lower[i]:g} and {self.upper[i]:g}, but the lower bound "
                "must be below the upper one"
            )
        with np.errstate(invalid="ignore"):
            span = self.upper - self.lower
            self._low_margin, self._high_margin = (
                np.minimum(_MARGIN * (1 + np.where(np.isfinite(bound), abs(bound), 0)), span / 2)
                for bound in (self.lower, self.upper)
            )

    @property
    def both(self) -> NDArray[np.bool_]:
        """Which parameters have two bounds, shape (dimension,)."""
        return np.isfinite(self.lower) & np.isfinite(self.upper)

    @property
    def any(self) -> bool:
        """Whether there is a bound at all."""
        return bool((np.isfinite(self.lower) | np.isfinite(self.upper)).any())

    def check(self, x: Array) -> None:
        """Refuse a vector that is outside.

        Raises:
            InputError: it is.
        """
        outside = np.flatnonzero((x < self.lower) | (x > self.upper))
        if len(outside):
            i = int(outside[0])
            raise InputError(
                f"x0: parameter {i} is {x[i]:g}, outside its bounds {self.lower[i]:g} and {self.upper[i]:g}"
            )

    def apply(self, free: Array) -> Array:
        """The points in the box that stand for points in free space; shape (..., dimension)."""
        if not self.any:
            return free
        x = self._fold(free)
        m, n = self._low_margin, self._high_margin
        with np.errstate(invalid="ignore"):
            low = self.lower + (x - self.lower + m) ** 2 / (4 * m)
            high = self.upper - (self.upper + n - x) ** 2 / (4 * n)
            bent = np.where(x < self.lower + m, low, np.where(x > self.upper - n, high, x))
        return np.clip(bent, self.lower, self.upper)  # for the last bit

    def invert(self, x: Array) -> Array:
        """The point of free space nearest the box that :meth:`apply` maps to ``x``."""
        if not self.any:
            return x.copy()
        m, n = self._low_margin, self._high_margin
        with np.errstate(invalid="ignore"):
            low = self.lower - m + 2 * np.sqrt(m * np.maximum(x - self.lower, 0))
            high = self.upper + n - 2 * np.sqrt(n * np.maximum(self.upper - x, 0))
            return np.where(x < self.lower + m, low, np.where(x > self.upper - n, high, x))

    def _fold(self, free: Array) -> Array:
        """Mirror at the outer ends of the margins, as often as it takes to be between them."""
        low, high = self.lower - self._low_margin, self.upper + self._high_margin
        with np.errstate(invalid="ignore"):
            span = high - low
            phase = np.mod(free - low, 2 * span)
            folded = low + np.where(phase > span, 2 * span - phase, phase)
        inside = (free >= low) & (free <= high)
        one_sided = np.where(free < low, 2 * low - free, np.where(free > high, 2 * high - free, free))
        return np.where(inside, free, np.where(self.both, folded, one_sided))


def _pair(bounds: Pair | None) -> Pair:
    if bounds is None:
        return None, None
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise InputError(
            "bounds must be (lower, upper), each a number, a vector or None; for one pair a parameter, "
            "give their transpose: numpy.transpose(bounds)"
        ) from None
    return lower, upper


def _vector(bound: ArrayLike | None, none: float, dimension: int) -> Array:
    try:
        found = np.array(none if bound is None else bound, dtype=np.float64)
        vector = np.broadcast_to(found, (dimension,)).copy()
    except (TypeError, ValueError):
        raise InputError(
            f"bounds must be (lower, upper), each a number or {dimension} of them: {bound!r} is neither"
        ) from None
    if np.isnan(vector).any():
        raise InputError("bounds must not be NaN")
    return vector
