"""The calls of a function that is optimised: the points of a generation in, their values out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.engines import Engine, start_engine
from escalade.engines.fork_server import warm_up
from escalade.errors import EnvironmentFailure, InputError
from escalade.fitness.catching import Catch, caught
from escalade.support.fitness import as_float64
from escalade.support.numbers import whole_number
from escalade.wings.optimize.points import PointsJob, PointsSetup

Array = NDArray[np.float64]

_WARM = ["torch", "escalade.wings.optimize.points"]


@dataclass(frozen=True)
class Values:
    """The values of a function at some points."""

    numbers: Array
    """Shape (n,); NaN where the function raised."""
    failed: NDArray[np.bool_]
    """Points at which it raised what is caught, shape (n,)."""
    words: str
    """The last of those exceptions; empty where there was none."""

    def part(self, rows: slice) -> Values:
        """The values of some of the points."""
        failed = self.failed[rows]
        return Values(self.numbers[rows], failed, self.words if failed.any() else "")


def check_function(function: Any, takes: str) -> None:
    """Refuse what cannot be called.

    Raises:
        InputError: it cannot; it may be x0, given in its place.
    """
    if not callable(function):
        said = f"the function must be callable as function({takes}), and {function!r} is not"
        raise InputError(f"{said}: it is the first argument, before x0")


class FunctionCalls:
    """Calls a function for each generation's points, in this process or in workers; a context manager.

    Args:
        function: what is optimised.
        workers: processes; 0 calls it in this one.
        vectorized: whether one call takes all points of a generation.
        tensors: whether points are tensors for it.
        catch: exceptions of the function that count as NaN does.
        seed: what the global random number generators are seeded from, for every call.

    Raises:
        InputError: an argument is impossible, or the function cannot be sent to processes.
    """

    def __init__(
        self, function: Any, *, workers: int, vectorized: bool, tensors: bool, catch: Catch, seed: int
    ) -> None:
        if whole_number(workers, "workers", 0) and vectorized:
            raise InputError(
                f"vectorized=True gives the whole generation to one call, so workers={workers} would idle: "
                "leave one of them out"
            )
        self._generations = self._evaluations = self._failures = 0
        self._vectorized, self._seed = vectorized, seed
        setup = PointsSetup(function, vectorized, tensors, caught(catch))
        if workers:
            warm_up(_WARM)
        self.engine: Engine = start_engine("local", setup, workers)

    def __enter__(self) -> FunctionCalls:
        return self

    def __exit__(self, *raised: object) -> None:
        self.engine.close()

    def values(self, points: Array) -> Values:
        """Call the function for points of shape (n, dimension).

        Raises:
            EnvironmentFailure: it raised what is not to be caught, or it has raised at every point so far.
            InputError: it gave no number.
        """
        job, n = PointsJob(self._seed, self._generations, points.copy()), len(points)
        results = self.engine.run(job, 1 if self._vectorized else n)
        given, raised = results.in_order(), results.raised
        try:
            values = as_float64(given[0] if self._vectorized else given)
        except InputError as problem:
            raise InputError("the function gave no numbers: it must give one number a point") from problem
        if values.size != n:
            raise InputError(
                f"the function gave an array of shape {values.shape} for {n} points: it must give one number "
                "a point"
            )
        failed = np.zeros(n, np.bool_)
        failed[slice(None) if raised and self._vectorized else list(raised)] = True
        self._generations += 1
        self._evaluations += n
        self._failures += int(failed.sum())
        if self._failures == self._evaluations:
            first = raised[min(raised)]
            raise EnvironmentFailure(f"{first}, and so it was at all {n} points: there is nothing to learn")
        return Values(values.reshape(n), failed, raised[max(raised)] if raised else "")
