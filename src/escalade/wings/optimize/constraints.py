"""Convert user-defined constraints to numbers that are at most 0 if a constraint is met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from escalade.errors import InputError
from escalade.support.arrays import as_float64, real_numbers

Array = NDArray[np.float64]

EQUAL = 1e-6
"""Tolerance of an equality."""


@runtime_checkable
class ScipyLinear(Protocol):
    """Attributes of ``scipy.optimize.LinearConstraint`` that are used."""

    A: Any
    lb: Any
    ub: Any


@runtime_checkable
class ScipyNonlinear(Protocol):
    """Attributes of ``scipy.optimize.NonlinearConstraint`` that are used."""

    fun: Any
    lb: Any
    ub: Any


Constraint: TypeAlias = Callable[[Any], Any] | ScipyLinear | ScipyNonlinear
"""A function g with one or several values that must be at most 0, or a constraint of SciPy."""
Constraints: TypeAlias = Constraint | Sequence[Constraint] | Literal[True]
"""One or several constraints; True if the optimized function returns (value, violations)."""


class ConstrainedFunction:
    """A function and its constraints, evaluated in the same process.

    Args:
        function: the function to optimize.
        constraints: see :func:`escalade.optimize`.
        dimension: number of parameters.

    Raises:
        InputError: a constraint has an unknown type, or does not fit the dimension.
    """

    def __init__(self, function: Callable[[Any], Any], constraints: Constraints, dimension: int) -> None:
        self._function = function
        listed = constraints if isinstance(constraints, list | tuple) else [constraints]
        self._limits = (
            None
            if constraints is True
            else [_limited(f"constraint {place}", one, dimension) for place, one in enumerate(listed)]
        )

    def __call__(self, point: Any) -> Any:
        """Return the value, and a list with the result of each constraint."""
        if self._limits is None:
            return self._function(point)
        copies = [point.clone() if isinstance(point, Tensor) else point.copy() for _ in self._limits]
        numbers = [limit.function(copy) for limit, copy in zip(self._limits, copies, strict=True)]
        return self._function(point), numbers

    def read(self, returned: Any, count: int) -> Array:
        """Convert the result of a call to an array of shape (count, 1 + constraints), values first.

        Args:
            returned: the result.
            count: number of points in the call.

        Raises:
            InputError: the result has a wrong type or shape.
        """
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise InputError(f"with constraints=True, return (value, violations), not {returned!r:.60}")
        value = _table(returned[0], count, "the function")
        if value.shape[1] != 1:
            raise InputError(
                f"the function must return one number per point, but returned {value.size} for {count} points"
            )
        if self._limits is None:
            return np.hstack([value, _table(returned[1], count, "the function")])
        sides = [limit.sides(part, count) for limit, part in zip(self._limits, returned[1], strict=True)]
        return np.hstack([value, *sides])


@dataclass(frozen=True)
class _Limited:
    """A function and its bounds, each a number or one per component."""

    name: str
    """Name in messages."""
    function: Callable[[Any], Any]
    lower: Array
    upper: Array

    def sides(self, returned: Any, count: int) -> Array:
        """Return numbers that are at most 0 if the result for ``count`` points is within the bounds."""
        table = _table(returned, count, self.name)
        width = table.shape[1]
        for which, bound in (("lb", self.lower), ("ub", self.upper)):
            if bound.size not in (1, width):
                raise InputError(
                    f"{self.name} returned {width} numbers for a point, but its {which} has {bound.size}"
                )
        lower, upper = (np.broadcast_to(bound, table.shape[1:]) for bound in (self.lower, self.upper))
        slack = np.where(lower == upper, EQUAL, 0.0)
        high, low = np.isfinite(upper), np.isfinite(lower)
        return np.hstack([(table - upper - slack)[:, high], (lower - table - slack)[:, low]])


@dataclass(frozen=True)
class _Linear:
    """Product of points, shape (..., dimension), with a matrix, shape (components, dimension)."""

    matrix: Array

    def __call__(self, points: Any) -> Array:
        return np.asarray(np.asarray(points) @ self.matrix.T)


def _limited(name: str, constraint: Any, dimension: int) -> _Limited:
    if np.any(getattr(constraint, "keep_feasible", False)):
        raise InputError(
            "constraints: keep_feasible=True is not supported, because infeasible points are evaluated; "
            "remove it"
        )
    if isinstance(constraint, ScipyLinear):
        dense = constraint.A.toarray() if hasattr(constraint.A, "toarray") else constraint.A
        matrix = np.atleast_2d(real_numbers(dense, "constraints: A"))
        if not np.isfinite(matrix).all():
            raise InputError("constraints: A must be finite")
        if matrix.shape[1:] != (dimension,):
            raise InputError(f"constraints: A of shape {matrix.shape} must have {dimension} columns")
        function: Callable[[Any], Any] = _Linear(matrix)
    elif isinstance(constraint, ScipyNonlinear):
        function = constraint.fun
    elif callable(constraint):
        return _Limited(name, constraint, np.asarray(-np.inf), np.asarray(0.0))
    else:
        kinds = "functions g, met if g(x) <= 0, or SciPy's LinearConstraint or NonlinearConstraint"
        raise InputError(f"constraints must be {kinds}, not {constraint!r:.60}")
    lower = real_numbers(constraint.lb, "constraints: lb")
    upper = real_numbers(constraint.ub, "constraints: ub")
    if lower.size > 1 < upper.size != lower.size:
        raise InputError(f"constraints: lb has {lower.size} numbers, but ub has {upper.size}")
    if np.isnan(lower).any() or np.isnan(upper).any():
        raise InputError("constraints: lb and ub must not be NaN or None; infinity means no bound")
    if (lower > upper).any():
        raise InputError("constraints: lb must not be above ub")
    return _Limited(name, function, lower, upper)


def _table(returned: Any, count: int, who: str) -> Array:
    """Return numbers as an array of shape (count, components)."""
    try:
        found = as_float64(returned)
    except InputError:
        raise InputError(f"{who} must return numbers, not {returned!r:.60}") from None
    if count > 1 and found.shape[:1] != (count,):
        raise InputError(
            f"{who} must return one row per point, but returned an array of shape {found.shape} for {count} "
            "points"
        )
    return found.reshape(count, -1)


def stacked(results: Sequence[Any]) -> Array:
    """Return results of :meth:`ConstrainedFunction.read` as one array, with NaN for calls that failed.

    Raises:
        InputError: points have different numbers of constraints.
    """
    widths = {result.shape[1] for result in results if np.ndim(result) == 2} or {1}
    if len(widths) > 1:
        few, many = min(widths) - 1, max(widths) - 1
        raise InputError(
            f"violations: one point has {few} and another has {many}; return the same number at every point"
        )
    (width,) = widths
    return np.vstack(
        [result if np.ndim(result) == 2 else np.full((np.size(result), width), np.nan) for result in results]
    )
