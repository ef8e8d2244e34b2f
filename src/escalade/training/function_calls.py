"""The calls of a function that is optimised: the points of a generation in, their values out."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.engines import Engine, start_engine
from escalade.engines.fork_server import warm_up
from escalade.errors import EnvironmentFailure, InputError
from escalade.fitness.catching import Catch, caught
from escalade.fitness.points import PointsJob, PointsSetup
from escalade.strategies.vectors import as_float64
from escalade.support.numbers import whole_number

Array = NDArray[np.float64]
"""Exceptions of the user's function that count as NaN does: these types; True is every Exception."""

_WARM = ["torch", "escalade.fitness.points"]


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
        if not callable(function):
            raise InputError(f"the function must be callable as function(x), and {function!r} is not")
        self.evaluations = 0
        """Points whose values are known."""
        self.failures = 0
        """Those of them at which the function raised."""
        self.last_failure = ""
        """The last of those exceptions, in words."""
        self.generations = 0
        self._vectorized, self._seed = vectorized, seed
        setup = PointsSetup(function, vectorized, tensors, caught(catch))
        if workers:
            warm_up(_WARM)
        self.engine: Engine = start_engine("local", setup, workers)

    def __enter__(self) -> FunctionCalls:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.engine.close()

    def values(self, points: Array) -> Array:
        """Call the function for points of shape (n, dimension); its values, shape (n,).

        Raises:
            EnvironmentFailure: it raised what is not to be caught, or it has raised at every point so far.
            InputError: it gave no number.
        """
        job, n = PointsJob(self._seed, self.generations, points.copy()), len(points)
        results = self.engine.run(job, 1 if self._vectorized else n).in_order()
        values = as_float64(results[0][0] if self._vectorized else [value for value, _ in results])
        if values.size != n:
            raise InputError(
                f"the function gave an array of shape {values.shape} for {n} points: it must give one number "
                "a point"
            )
        said = [words for _, words in results if words is not None]
        self.generations += 1
        self.evaluations += n
        if said:
            self.failures += n if self._vectorized else len(said)
            self.last_failure = said[-1]
        if said and self.failures == self.evaluations:
            raise EnvironmentFailure(f"{said[0]}, and so it was at all {n} points: there is nothing to learn")
        return values.reshape(n)
