"""Minimize or maximize a function of a vector, or many functions at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from escalade.errors import Catch, InputError
from escalade.perturbation import Stream, seeds, usual_noise
from escalade.recorders import Announcer, Goals, Recorder, RunInfo, check_recorders, start_recorders
from escalade.strategies.base import Direction, StrategyFactory
from escalade.strategies.bounds import BoundsLike
from escalade.support.imports import called
from escalade.support.numbers import counted, seed_number, workers_in_words
from escalade.training.limits import Limits
from escalade.wings.optimize.asynchronous import (
    AsynchronousSearch,
    asynchronous_population,
    check_asynchronous,
    close_together,
    run_asynchronously,
)
from escalade.wings.optimize.calls import FunctionCalls, check_function
from escalade.wings.optimize.constrained import ConstrainedSearch
from escalade.wings.optimize.constraints import ConstrainedFunction, Constraints
from escalade.wings.optimize.noise import NoisySearch, noisy_population
from escalade.wings.optimize.plan import SearchOptions, plan_search
from escalade.wings.optimize.search import Optimum, Search, check_callback, run_searches
from escalade.wings.optimize.space import EarlierPoints, SearchSpace

Function = Callable[[Any], Any]
"""Maps a vector (dimension,) to a number, or with ``vectorized``, rows (n, dimension) to numbers (n,)."""


def optimize(
    function: Function,
    x0: ArrayLike | Tensor | EarlierPoints | Callable[[np.random.Generator], ArrayLike],
    strategy: str | StrategyFactory = "cma-es",
    *,
    direction: Direction = "minimize",
    sigma: float | ArrayLike | None = None,
    population: int | None = None,
    bounds: BoundsLike | None = None,
    integers: Sequence[int] | None = None,
    constraints: Constraints | None = None,
    budget: int | None = None,
    seconds: float | None = None,
    target: float | None = None,
    tolerance: float = 1e-11,
    restarts: Literal["ipop", "bipop"] | None = None,
    noisy: bool = False,
    vectorized: bool = False,
    workers: int = 0,
    asynchronous: bool = False,
    catch: Catch = False,
    callback: Callable[[Optimum], bool | None] | None = None,
    recorders: Sequence[str | Recorder] = (),
    verbose: bool = False,
    seed: int = 0,
) -> Optimum:
    """Minimize or maximize a function of a vector.

    The search uses float64. A value that is NaN, infinite or beyond 1e30 counts as the worst of its
    generation. On one machine with the same number of BLAS threads, the same seed gives the same points with
    any number of workers, if the function is deterministic. It may draw random numbers: the global generators
    of ``random``, ``numpy.random`` and ``torch`` are seeded for each point before the call. They are restored
    at the end, and before each call of ``callback`` or a recorder.

    Args:
        function: takes a vector, shape (dimension,), and returns a number. The vector is a numpy array, or a
            tensor if ``x0`` is one. The function may modify it.
        x0: starting point, shape (dimension,); or a function that takes a ``numpy.random.Generator`` and
            returns a starting point, called for every search; or, for cma-es, :class:`EarlierPoints` with
            known values of this or a similar function. After a restart, a vector is replaced by a random
            point within the bounds; parameters without two bounds start at the same value again.
        strategy: a name, such as ``cma-es`` (for up to a few hundred parameters) or ``cr-fm-nes``; ``auto``,
            which selects one by dimension, restarts and budget; or a callable with the arguments of a
            strategy class, such as ``partial(OpenAIES, lr=0.1)``. ``strategy`` of the result is its name.
        direction: ``minimize`` or ``maximize``.
        sigma: initial standard deviation, a number or one per parameter. The default is 0.3 of the range
            between two bounds, and 0.5 for parameters without two bounds. It never exceeds that range,
            initially or when the strategy adapts it.
        population: points per generation; None for the default of the strategy.
        bounds: ``(lower, upper)``, each a number, a vector or None; or one pair of numbers per parameter,
            ``[(0, 1), (2, None)]``; or a ``scipy.optimize.Bounds``. With two parameters, two pairs are one
            per parameter, except a tuple of two arrays or lists, which is ``(lower, upper)``. The function is
            never called outside the bounds. Two equal bounds fix a parameter.
        integers: indices of integer parameters, such as ``[0, 3]``, or a mask. The function gets them
            rounded. A strategy with one standard deviation per parameter keeps theirs large enough to try
            other integers.
        constraints: one or a list of functions g of a point that must be at most 0,
            ``scipy.optimize.LinearConstraint`` or ``NonlinearConstraint``; or True if the function returns
            (value, violations), with violations that are at most 0 if a constraint is met, and more negative
            farther inside. A function g returns one or several numbers; with ``vectorized``, one row per
            point. The function and all constraints are called at each point, including infeasible ones,
            which counts as one evaluation. ``best`` of the result is the best feasible point, or the least
            violated one if there is none. Two equal bounds of SciPy are an equality, met to 1e-6. An
            equality among violations is two of them, h and -h.
        budget: maximum number of evaluations, checked at the end of each generation.
        seconds: time limit, checked at the end of each generation. A generation that exceeds it by more than
            a tenth (at least 2 s) is dropped.
        target: stop when a value at least as good as this is found.
        tolerance: convergence threshold, see :class:`escalade.wings.optimize.stopping.StopRules`.
        restarts: for cma-es, sep-cma-es, ma-es and xnes: restart after convergence, with doubled populations
            (``ipop``), or with large and small populations (``bipop``), until the budget is used, the target
            is found, or the population has doubled nine times.
        noisy: set this for a function that returns different values at the same point. The noise is measured,
            and members are evaluated several times if it is too large. The default population is three times
            the usual one. ``best`` of the result is the center, ``best_fitness`` the mean of 30 fresh
            evaluations there, which are part of the budget, and ``interval`` its 95 % interval. That mean
            must reach the target.
        vectorized: the function takes all points of a generation, shape (n, dimension), and returns shape
            (n,).
        workers: number of worker processes that call the function, each with one thread; 0 calls it in this
            process. The function is sent by value (cloudpickle), so a script needs no ``__main__`` guard.
        asynchronous: for cma-es and ma-es: workers never wait for each other. A generation ends with any
            results as many as it has members, so the same seed gives different points each time. The default
            population is at least 1.5 per worker.
        catch: exceptions of the function that count as NaN: a type, a tuple of types, or True for every
            ``Exception``. ``failures`` of the result counts these points; with ``vectorized``, all points of
            the call.
        callback: called after each generation with the :class:`Optimum` so far, whose ``stop_reason`` is
            empty. It may stop the search by returning True or raising StopIteration, and may modify the
            arrays.
        recorders: objects with the methods of :class:`escalade.recorders.Recorder`, or names such as
            ``notebook``. They get a row per generation, in which returns are function values and episodes are
            points. Recorders that write into a run folder are rejected, because a search has no folder.
        verbose: print the progress of the search.
        seed: seed of the search.

    Raises:
        InputError: an argument is invalid, the function returned something other than numbers or no finite
            number, or ``seconds`` ended in the first generation.
        EnvironmentFailure: the function raised an exception that is not in ``catch``, or failed at every
            point so far. The message contains the point and the generation; with ``asynchronous``, the number
            of the evaluation.

    Examples:
        >>> import numpy as np
        >>> found = optimize(lambda x: ((x - 3) ** 2).sum(), np.zeros(4), bounds=(-5, 5))
        >>> bool(abs(found.best - 3).max() < 1e-4), found.stop_reason
        (True, 'tolfun')
    """
    check_function(function, "x")
    check_recorders(recorders)
    check_callback(callback)
    limits = Limits(seconds=seconds)
    space = SearchSpace(x0, sigma, bounds, seed_number(seed), integers, direction)
    if asynchronous:
        check_asynchronous(workers, vectorized=vectorized, noisy=noisy)
        if population is None:
            population = asynchronous_population(space.dimension, workers)
    if noisy and population is None:
        population = noisy_population(space.dimension)
    evaluated: Any = function
    if constraints is not None:
        if noisy or asynchronous:
            raise InputError("constraints do not work with noisy=True or asynchronous=True; remove one")
        evaluated = ConstrainedFunction(function, constraints, space.length)
    options = SearchOptions(strategy, direction, population, budget, target, tolerance, restarts)
    plan = plan_search(options, x0, space)
    title = f"{called(function)}: {plan.name}, {counted(space.dimension, 'parameter')}, "
    goals = Goals(
        title + workers_in_words(workers),
        target,
        seconds=seconds,
        minimize=direction == "minimize",
        print_evaluations=False,
    )
    with ExitStack() as closing:
        wanted = [*recorders, *(["console"] if verbose else [])]
        making = partial(FunctionCalls, evaluated, vectorized=vectorized, tensors=space.tensors, catch=catch)
        if asynchronous:  # each worker has its own engine
            drawn = seeds(seed, Stream.EPISODE, np.arange(workers)).tolist()
            calls = [making(workers=1, seed=one, least=math.inf) for one in drawn]
        else:
            watched = bool(callback or wanted or callable(x0))
            calls = [making(workers=workers, seed=seed, watched=watched)]
        for one in calls:
            closing.enter_context(one)
        if asynchronous:
            closing.callback(close_together, calls)
        announcer = Announcer()
        listening = start_recorders(wanted, RunInfo(None, goals), closing, announcer)
        arguments = space, plan, options, limits, listening, callback
        usual = Search if constraints is None else ConstrainedSearch
        search = (AsynchronousSearch if asynchronous else NoisySearch if noisy else usual)(*arguments)
        for one in calls:
            one.engine.on_note = search.notes.add
        announcer.connect(search.notes.add)
        if plan.note:
            search.notes.add(plan.note)
        if isinstance(search, AsynchronousSearch):
            search.notes.add("asynchronous: points depend on the order of the results, not only on the seed")
            return run_asynchronously(search, calls, limits)
        return run_searches([search], calls[0], limits)[0]


def optimize_batch(
    function: Callable[[Any, Any], Any],
    x0: ArrayLike | Tensor,
    strategy: str | StrategyFactory = "cma-es",
    *,
    direction: Direction = "minimize",
    sigma: float | ArrayLike | None = None,
    population: int | None = None,
    bounds: BoundsLike | None = None,
    budget: int | None = None,
    seconds: float | None = None,
    target: float | None = None,
    tolerance: float = 1e-11,
    restarts: Literal["ipop", "bipop"] | None = None,
    catch: Catch = False,
    seed: int = 0,
) -> list[Optimum]:
    """Minimize or maximize many functions of a vector at once.

    Each function has its own search with the same options. One call evaluates a generation of all searches.
    The result of a search depends only on its number, its function and ``seed``: it equals that of
    :func:`escalade.optimize` with ``seed + number``, except that searches with more than 256 parameters share
    one noise table.

    Args:
        function: takes the points of all unfinished searches, shape (rows, dimension), and the index of the
            function of each point, shape (rows,), int64. Returns values, shape (rows,). Arguments are numpy
            arrays, or tensors if ``x0`` is a tensor; the function may modify them.
        x0: starting points, shape (functions, dimension).
        strategy: strategy of every search, as in :func:`escalade.optimize`.
        direction: ``minimize`` or ``maximize``.
        sigma: initial standard deviation, a number or one per parameter.
        population: points per generation of each search.
        bounds: bounds of the points of every function.
        budget: maximum number of evaluations of each function.
        seconds: time limit for all searches together.
        target: value at which a search stops.
        tolerance: convergence threshold of a search.
        restarts: ``ipop`` or ``bipop``: restart after convergence.
        catch: exceptions that count as NaN at every point of the call.
        seed: seed of the first search.

    Returns:
        An :class:`Optimum` for each function, in order. If a function returned no finite number,
        ``best_fitness`` is NaN and ``best`` is the center.

    Raises:
        InputError: an argument is invalid, or no function returned a finite number.
        EnvironmentFailure: the function raised an exception that is not in ``catch``, or failed in every
            call.

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
    except ValueError:
        raise InputError("x0 must have one row per function, all of the same length") from None
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"x0 of shape {shape} must have one row per function: (functions, dimension)")
    limits = Limits(seconds=seconds)
    options = SearchOptions(strategy, direction, population, budget, target, tolerance, restarts)
    first, rows = seed_number(seed), list(cast("Sequence[Any]", x0))
    noise = usual_noise(first, len(rows[0]))
    searches = []
    for number, row in enumerate(rows):
        space = SearchSpace(row, sigma, bounds, first + number, None, direction, noise)
        searches.append(Search(space, plan_search(options, row, space), options, limits))
    with FunctionCalls(function, numbered=True, tensors=space.tensors, catch=catch, seed=first) as calls:
        return run_searches(searches, calls, limits)
