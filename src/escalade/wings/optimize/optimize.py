"""Minimise (or maximise) a function of a vector, or many functions side by side."""

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
    run_asynchronously,
)
from escalade.wings.optimize.calls import FunctionCalls, check_function
from escalade.wings.optimize.constrained import ConstrainedSearch
from escalade.wings.optimize.constraints import ConstrainedFunction, Constraints
from escalade.wings.optimize.noise import NoisySearch, noisy_population
from escalade.wings.optimize.plan import SearchOptions, plan_search
from escalade.wings.optimize.search import Optimum, Search, run_searches
from escalade.wings.optimize.space import EarlierPoints, SearchSpace

Function = Callable[[Any], Any]
"""A vector, shape (dimension,), to a number; with ``vectorized``, rows (n, dimension) to numbers (n,)."""


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
    """Search for the smallest (or largest) value of a function of a vector.

    The search is in float64. A value that is NaN, infinite or beyond 1e30 counts as the worst of its
    generation. The same seed gives the same points on one machine with as many threads of BLAS, whatever
    the number of workers, if the function gives the same values. A function that draws random numbers does:
    before each call the global generators of ``random``, ``numpy.random`` and ``torch`` are seeded for its
    point. They are put back at the end, and before each call of ``callback`` or a recorder.

    Args:
        function: takes a vector, shape (dimension,), and gives a number. It gets numpy arrays, or tensors
            where ``x0`` is a tensor; they are its own.
        x0: where to begin, shape (dimension,), or a function of a ``numpy.random.Generator`` that gives such
            a vector, called for every search. A search after the first begins at a random point within the
            bounds, or at the same vector where there are none. For cma-es also :class:`EarlierPoints`:
            points whose values are known, of this function or one like it.
        strategy: a name, such as ``cma-es`` (up to a few hundred parameters) or ``cr-fm-nes``; ``auto``,
            which takes one by dimension, restarts and budget (``strategy`` of the result names it);
            or a callable with a strategy class's arguments, such as ``partial(OpenAIES, lr=0.1)``.
        direction: ``minimize`` or ``maximize``.
        sigma: the first standard deviation, a number or one a parameter; 0.3 of the range between two
            bounds and 0.5 elsewhere when not given. It never exceeds the range between two bounds, neither at
            first nor when the strategy adapts it.
        population: points a generation; the strategy's default when not given.
        bounds: ``(lower, upper)``, each a number, a vector or None; or one pair of numbers a parameter,
            ``[(0, 1), (2, None)]``; or a ``scipy.optimize.Bounds``. Two pairs that can be read in both ways
            are refused, but for a tuple of two arrays or lists, which is ``(lower, upper)``. The function is
            never called outside. Two equal bounds fix a parameter.
        integers: numbers of the parameters that are whole, from 0, such as ``[0, 3]``, or a mask. The
            function gets them rounded, and a strategy with a standard deviation for each parameter keeps
            theirs large enough for other whole numbers to be tried.
        constraints: functions g of a point that are to be at most 0, ``scipy.optimize.LinearConstraint`` or
            ``NonlinearConstraint``, one or a list of them; or True: the function returns (value, violations),
            numbers that are at most 0 if a constraint is met, and the more negative the farther from it.
            A g gives a number or several; with ``vectorized``, a row for each point. The function and all
            constraints are called at each point, also at infeasible ones, which is one evaluation. ``best``
            is the best feasible point, or the least violated one. Two equal bounds of SciPy's are an
            equality, met to 1e-6; of violations, it is two of them, h and -h.
        budget: evaluations after which to stop, at the end of a generation.
        seconds: time after which to stop, at the end of a generation. A generation that is not done when a
            tenth of it (at least 2 s) has passed beyond is given up.
        target: stop when a value as good as this is found.
        tolerance: when a search has converged, see :class:`escalade.wings.optimize.stopping.StopRules`.
        restarts: for cma-es, sep-cma-es, ma-es and xnes: start again after convergence, with populations that
            double (``ipop``), or with large and small ones in turns (``bipop``), until the budget is used,
            the target is found, or the population has doubled nine times.
        noisy: for a function that gives different values at the same point. The noise is measured, and
            members are evaluated more than once if it is too large. The default population is three times
            the usual one. ``best`` is the center, ``best_fitness`` the mean of 30 fresh evaluations there,
            which the budget includes, and ``interval`` its 95 % interval. That mean must reach a target.
        vectorized: the function takes all points of a generation, shape (n, dimension), and gives shape (n,).
        workers: processes that call the function, each on one thread; 0 calls it in this process. The
            function travels by value (cloudpickle), so a script needs no ``__main__`` guard.
        asynchronous: for cma-es and ma-es: workers never wait for one another. A generation ends with as many
            results as it has members, whichever they are: the same seed then gives other points each time.
            The default population is at least 1.5 for each worker.
        catch: exceptions of the function that count as NaN does: a type, a tuple of types, or True for every
            ``Exception``. ``failures`` of the result counts the points; with ``vectorized`` all of a call.
        callback: called after each generation with the :class:`Optimum` so far, its ``stop_reason`` empty;
            True stops, and so does StopIteration. Its arrays are the callback's own.
        recorders: objects with the methods of :class:`escalade.recorders.Recorder`, or names such as
            ``notebook``, that get a row for each generation. A return in it is a value of the function, an
            episode a point. Those that write into a run folder are refused: a search has none.
        verbose: print how the search goes.
        seed: the same seed gives the same search.

    Raises:
        InputError: an argument is impossible; the function gave something other than numbers, or no finite
            one; or ``seconds`` ended inside the first generation. The message names it.
        EnvironmentFailure: the function raised what ``catch`` does not name, or it raised at every point of
            the search so far. The message names the point and the generation.

    Examples:
        >>> import numpy as np
        >>> found = optimize(lambda x: ((x - 3) ** 2).sum(), np.zeros(4), bounds=(-5, 5))
        >>> bool(abs(found.best - 3).max() < 1e-4), found.stop_reason
        (True, 'tolfun')
    """
    check_function(function, "x")
    check_recorders(recorders)
    limits = Limits(seconds=seconds)
    space = SearchSpace(x0, sigma, bounds, seed_number(seed), integers, direction)
    if asynchronous:
        check_asynchronous(workers, vectorized=vectorized, noisy=noisy)
        if population is None:
            population = asynchronous_population(space.dimension, workers)
    if noisy and population is None:
        population = noisy_population(space.dimension)
    judged: Any = function
    if constraints is not None:
        if noisy or asynchronous:
            raise InputError("constraints do not work with noisy=True or asynchronous=True: leave one out")
        judged = ConstrainedFunction(function, constraints, space.length)
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
        making = partial(FunctionCalls, judged, vectorized=vectorized, tensors=space.tensors, catch=catch)
        if asynchronous:  # each worker is an engine of its own
            drawn = seeds(seed, Stream.EPISODE, np.arange(workers)).tolist()
            calls = [making(workers=1, seed=one, least=math.inf) for one in drawn]
        else:
            watched = bool(callback or wanted or callable(x0))
            calls = [making(workers=workers, seed=seed, watched=watched)]
        for one in calls:
            closing.enter_context(one)
        announcer = Announcer()
        listening = start_recorders(wanted, RunInfo(None, goals), closing, announcer)
        given = space, plan, options, limits, listening, callback
        usual = Search if constraints is None else ConstrainedSearch
        search = (AsynchronousSearch if asynchronous else NoisySearch if noisy else usual)(*given)
        for one in calls:
            one.engine.on_note = search.notes.say
        announcer.connect(search.notes.say)
        if plan.note:
            search.notes.say(plan.note)
        if isinstance(search, AsynchronousSearch):
            search.notes.say("asynchronous: the points depend on the order of the results, not on seed alone")
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
    """Search for the smallest (or largest) value of each of many functions of a vector.

    Every function has a search of its own, all of them with the same options; their generations are turned
    together. What a search finds depends on its number, its function and ``seed``, not on the others: it is
    the search of :func:`escalade.optimize` with ``seed + number``, except that searches of more than 256
    parameters share one table of noise.

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
    if np.ndim(x0) != 2 or 0 in np.shape(x0):
        raise InputError(
            f"x0 of shape {np.shape(x0)} must have a row for each function: (functions, dimension)"
        )
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
