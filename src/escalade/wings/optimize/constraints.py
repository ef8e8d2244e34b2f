"""Constraints of a function: as users write them, and as numbers that are at most 0 if they are met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from escalade.errors import InputError
from escalade.support.arrays import as_float64

Array = NDArray[np.float64]

EQUAL = 1e-6
"""The tolerance of an equality."""


@runtime_checkable
class ScipyLinear(Protocol):
    """The part of ``scipy.optimize.LinearConstraint`` that is read."""

    A: Any
    lb: Any
    ub: Any


@runtime_checkable
class ScipyNonlinear(Protocol):
    """The part of ``scipy.optimize.NonlinearConstraint`` that is read."""

    fun: Any
    lb: Any
    ub: Any


Constraint: TypeAlias = Callable[[Any], Any] | ScipyLinear | ScipyNonlinear
"""A function g that is to be at most 0, with one value or several; or a constraint of SciPy."""
Constraints: TypeAlias = Constraint | Sequence[Constraint] | Literal[True]
"""One or several; True if the optimised function returns (value, violations)."""


class ConstrainedFunction:
    """A function and its constraints, called one after the other in the same process.

    Args:
        function: what is optimised.
        constraints: see :func:`escalade.optimize`.
        dimension: number of parameters.

    Raises:
        InputError: a constraint is of an unknown kind, or does not fit the dimension.
    """

    def __init__(self, function: Callable[[Any], Any], constraints: Constraints, dimension: int) -> None:
        self._function = function
        given = constraints if isinstance(constraints, list | tuple) else [constraints]
        self._limits = None if constraints is True else [_limited(one, dimension) for one in given]

    def __call__(self, point: Any) -> Any:
        """Return the value, and a list of what each constraint gave."""
        if self._limits is None:
            return self._function(point)
        copies = [point.clone() if isinstance(point, Tensor) else point.copy() for _ in self._limits]
        numbers = [limit.function(copy) for limit, copy in zip(self._limits, copies, strict=True)]
        return self._function(point), numbers

    def read(self, given: Any, count: int) -> Array:
        """Return the result of a call as an array of shape (count, 1 + constraints): values come first.

        Args:
            given: the result.
            count: number of points in the call.

        Raises:
            InputError: it does not hold such numbers.
        """
        if not isinstance(given, tuple) or len(given) != 2:
            raise InputError(f"with constraints=True, return (value, violations), not {given!r:.60}")
        value = _table(given[0], count, "the function")
        if value.shape[1] != 1:
            raise InputError(
                f"the function gave {value.size} numbers for {count} points: it must give one a point"
            )
        if self._limits is None:
            return np.hstack([value, _table(given[1], count, "the function")])
        sides = [
            limit.sides(_table(numbers, count, f"constraint {place}"))
            for place, (limit, numbers) in enumerate(zip(self._limits, given[1], strict=True))
        ]
        return np.hstack([value, *sides])


@dataclass(frozen=True)
class _Limited:
    """A function and its bounds, each a number or one a component."""

    function: Callable[[Any], Any]
    lower: Array
    upper: Array

    def sides(self, table: Array) -> Array:
        """Return numbers that are at most 0 if ``table``, shape (count, components), is within the bounds."""
        lower, upper = (np.broadcast_to(bound, table.shape[1:]) for bound in (self.lower, self.upper))
        slack = np.where(lower == upper, EQUAL, 0.0)
        high, low = np.isfinite(upper), np.isfinite(lower)
        return np.hstack([(table - upper - slack)[:, high], (lower - table - slack)[:, low]])


@dataclass(frozen=True)
class _Linear:
    """Points, shape (..., dimension), times a matrix, shape (components, dimension)."""

    matrix: Array

    def __call__(self, points: Any) -> Array:
        return np.asarray(np.asarray(points) @ self.matrix.T)


def _limited(given: Any, dimension: int) -> _Limited:
    if np.any(getattr(given, "keep_feasible", False)):
        raise InputError(
            "constraints: keep_feasible=True is impossible, as points outside are tried; remove it"
        )
    if isinstance(given, ScipyLinear):
        dense = given.A.toarray() if hasattr(given.A, "toarray") else given.A
        matrix = np.atleast_2d(np.asarray(dense, dtype=np.float64))
        if matrix.shape[1:] != (dimension,):
            raise InputError(f"constraints: A of shape {matrix.shape} must have {dimension} columns")
        function: Callable[[Any], Any] = _Linear(matrix)
    elif isinstance(given, ScipyNonlinear):
        function = given.fun
    elif callable(given):
        return _Limited(given, np.asarray(-np.inf), np.asarray(0.0))
    else:
        kinds = "functions g, met if g(x) <= 0, or SciPy's LinearConstraint or NonlinearConstraint"
        raise InputError(f"constraints must be {kinds}, not {given!r:.60}")
    return _Limited(function, np.asarray(given.lb, dtype=np.float64), np.asarray(given.ub, dtype=np.float64))


def _table(given: Any, count: int, who: str) -> Array:
    """Return numbers as an array of shape (count, components)."""
    try:
        found = as_float64(given)
    except InputError:
        raise InputError(f"{who} gave {given!r:.60}: it must give numbers") from None
    if count > 1 and found.shape[:1] != (count,):
        raise InputError(
            f"{who} gave an array of shape {found.shape} for {count} points: it must give a row a point"
        )
    return found.reshape(count, -1)


def stacked(results: Sequence[Any]) -> Array:
    """Return results of :meth:`ConstrainedFunction.read` as one array; those of calls that failed are NaN.

    Raises:
        InputError: points have different numbers of constraints.
    """
    widths = {result.shape[1] for result in results if np.ndim(result) == 2} or {1}
    if len(widths) > 1:
        few, many = min(widths) - 1, max(widths) - 1
        raise InputError(
            f"violations: one point has {few} and another {many}: return as many for every point"
        )
    (width,) = widths
    return np.vstack(
        [result if np.ndim(result) == 2 else np.full((np.size(result), width), np.nan) for result in results]
    )
