"""Minimise (or maximise) many functions side by side, one call a generation for all of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from escalade.errors import InputError
from escalade.fitness.catching import Catch
from escalade.perturbation import NoiseTable, table_size
from escalade.strategies.base import Direction, StrategyFactory
from escalade.strategies.bounds import Given
from escalade.support.numbers import seed_number
from escalade.training.limits import Limits
from escalade.wings.optimize.function_calls import FunctionCalls, check_function
from escalade.wings.optimize.optimum import Optimum
from escalade.wings.optimize.search import Search, turn
from escalade.wings.optimize.search_plan import SearchOptions, SearchPlan


def optimize_batch(
    function: Callable[[Any, Any], Any],
    x0: ArrayLike | Tensor,
    strategy: str | StrategyFactory = "cma-es",
    *,
    direction: Direction = "minimize",
    sigma: float | ArrayLike | None = None,
    population: int | None = None,
    bounds: Given | None = None,
    budget: int | None = None,
    seconds: float | None = None,
    target: float | None = None,
    tolerance: float = 1e-11,
    restarts: Literal["ipop", "bipop"] | None = None,
    catch: Catch = False,
    seed: int = 0,
) -> list[Optimum]:
    """Search for the smallest (or largest) value of each of many functions of a vector.

    Every function has a search of its own, all of them with the same options; their generations are turned
    together. What a search finds depends on its number, its function and ``seed``, not on the others: it is
    the search of :func:`escalade.optimize` with ``seed + number``, but for the table of noise that all share.

    Args:
        function: takes the points of all searches that have not ended, shape (rows, dimension), and for each
            the number of its function, shape (rows,), int64, from 0; it gives values, shape (rows,). It
            gets numpy arrays, or tensors where ``x0`` is a tensor; they are its own.
        x0: where to begin, shape (functions, dimension).
        strategy: as in :func:`escalade.optimize`, for every search, as all that follows.
        direction: ``minimize`` or ``maximize``.
        sigma: the first standard deviation, a number or one a parameter.
        population: points a generation of each search.
        bounds: of every function's points.
        budget: evaluations of each function.
        seconds: time for all of them together.
        target: a search ends when it finds a value as good as this.
        tolerance: when a search has converged.
        restarts: ``ipop`` or ``bipop``: start again after convergence.
        catch: exceptions that count as NaN does, at every point of the call.
        seed: the same seed gives the same searches.

    Returns:
        An :class:`Optimum` for each function, in order. For a function that gave no finite number its
        ``best_fitness`` is NaN and its ``best`` the centre.

    Raises:
        InputError: an argument is impossible, or no function gave a finite number at all.
        EnvironmentFailure: the function raised what ``catch`` does not name, or it raised in every call.

    Examples:
        >>> import numpy as np
        >>> places = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> found = optimize_batch(lambda x, number: ((x - places[number]) ** 2).sum(1), np.zeros((3, 2)))
        >>> np.allclose([one.best for one in found], places)
        True
    """
    check_function(function, "points, numbers")
    try:
        shape = np.shape(x0)
    except (TypeError, ValueError, RuntimeError):
        raise InputError("x0 must have a row for each function, all of one length") from None
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"x0 of shape {shape} must have a row for each function: (functions, dimension)")
    limits = Limits(seconds=seconds)
    options = SearchOptions(
        strategy, direction, sigma, population, bounds, None, budget, target, tolerance, restarts
    )
    first, rows = seed_number(seed), list(x0)  # type: ignore[arg-type]
    noise = NoiseTable(first, table_size(shape[1]))
    plans = [SearchPlan(options, row, first + number, noise) for number, row in enumerate(rows)]
    searches = [
        Search(plan.space, direction, budget, target, limits, (), None, plan.name, number)
        for number, plan in enumerate(plans)
    ]
    with FunctionCalls(
        _Numbered(function),
        workers=0,
        vectorized=True,
        tensors=plans[0].space.tensors,
        catch=catch,
        seed=first,
    ) as calls:
        turns = [plan.turns(search) for plan, search in zip(plans, searches, strict=True)]
        reasons = turn(list(zip(searches, turns, strict=True)), calls, limits)
    found = [search.found(reason) for search, reason in zip(searches, reasons, strict=True)]
    if all(math.isnan(one.best_fitness) for one in found):
        raise InputError("no function gave a finite number up to 1e30 at all: there is nothing to optimise")
    return found


class _Numbered:
    """Calls a function of points and numbers with rows whose last column is the number."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function

    def __call__(self, rows: Any) -> Any:
        points, numbers = rows[:, :-1], rows[:, -1]
        if isinstance(rows, Tensor):
            return self._function(points.clone(), numbers.long())
        return self._function(points.copy(), numbers.astype(np.int64))
