"""Calls of the optimized function, in this process or in workers."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from escalade.engines import Engine, start_engine
from escalade.engines.base import Feed
from escalade.engines.fork_server import warm_up
from escalade.errors import Catch, EnvironmentFailure, InputError, caught, in_words
from escalade.perturbation import Stream, seeds
from escalade.support.arrays import as_float, as_float64, holds_numbers
from escalade.support.generators import Generators, generators_kept, seed_generators
from escalade.support.numbers import whole_number
from escalade.wings.optimize.constraints import ConstrainedFunction, stacked

Array = NDArray[np.float64]

_SLOTS = 1  # points per worker; calls that are worth a process take longer than the delay of the pipe


@dataclass(frozen=True)
class Values:
    """Values of a function at some points."""

    numbers: Array
    """Shape (n,); NaN if the function raised."""
    failed: NDArray[np.bool_]
    """True for points at which the function raised a caught exception, shape (n,)."""
    message: str
    """Message of the last of these exceptions, or ""."""
    constraints: Array = field(default_factory=partial(np.empty, (0, 0)))
    """Constraint values, at most 0 if the constraint is met, shape (n, constraints)."""

    def part(self, rows: slice) -> Values:
        """Return the values of some of the points."""
        failed = self.failed[rows]
        message = self.message if self.message and failed.any() else ""
        return Values(self.numbers[rows], failed, message, self.constraints[rows])


def check_function(function: Any, arguments: str) -> None:
    """Check that the function is callable.

    Raises:
        InputError: it is not, for example because x0 comes first.
    """
    if not callable(function):
        raise InputError(
            f"the first argument, before x0, must be a function callable as function({arguments}), not "
            f"{function!r}"
        )


class FunctionCalls:
    """Context manager that calls a function at the points of each generation, in this process or in workers.

    Args:
        function: the function to optimize.
        workers: number of worker processes; 0 calls the function in this process.
        vectorized: one call takes all points of a generation.
        numbered: the function also takes the number of the search of each point.
        tensors: pass points as tensors.
        catch: exceptions of the function that count as NaN.
        seed: seed of the global random number generators, which are seeded for every call.
        watched: other user code runs between generations. The generators are then restored after each
            generation instead of only at the end.
        least: number of points that may all fail. If more points fail without a success, an error is raised.

    Raises:
        InputError: an argument is invalid, or the function cannot be pickled.
    """

    def __init__(
        self,
        function: Any,
        *,
        workers: int = 0,
        vectorized: bool = True,
        numbered: bool = False,
        tensors: bool,
        catch: Catch,
        seed: int,
        watched: bool = False,
        least: float = 0,
    ) -> None:
        if whole_number(workers, "workers", 0) and vectorized:
            raise InputError(
                f"workers={workers} has no effect with vectorized=True, which evaluates a generation in one "
                "call; remove one of them"
            )
        self._generations = self._evaluations = self._failures = 0
        self._least = least
        self._vectorized, self._seed, self._numbered = vectorized, seed, numbered
        self._constrained = isinstance(function, ConstrainedFunction)
        work = partial(PointsWork, function, vectorized, tensors, caught(catch), watched and not workers)
        if workers:
            warm_up(["torch", __name__])
        self.engine: Engine = start_engine("local", work, workers)

    def __enter__(self) -> FunctionCalls:
        self._found = Generators()
        return self

    def __exit__(self, *raised: object) -> None:
        self._found.restore()
        self.engine.close()

    def values(self, parts: Sequence[Array], numbers: Sequence[int], name: str = "") -> Values:
        """Call the function at the points of several searches, each of shape (n, dimension).

        Args:
            parts: the points of each search.
            numbers: the number of each search.
            name: name of a single point in messages.

        Raises:
            EnvironmentFailure: the function raised an exception that is not caught, or has failed at every
                point so far.
            InputError: the function returned something other than numbers.
        """
        arrays: tuple[NDArray[Any], ...] = (np.concatenate(parts),)  # a copy
        if self._numbered:
            arrays += (np.repeat(np.array(numbers, dtype=np.int64), [len(part) for part in parts]),)
        n, job = len(arrays[0]), PointsJob(self._seed, self._generations, arrays, name)
        results = self.engine.run(job, 1 if self._vectorized else n)
        returned: Any = results.in_order()
        raised = results.raised
        table = stacked(returned) if self._constrained else self._column(returned, n)
        failed = np.zeros(n, np.bool_)
        if raised:
            failed[slice(None) if self._vectorized else list(raised)] = True
            self._failures += int(failed.sum())
        self._generations += 1
        self._evaluations += n
        if self._failures == self._evaluations > self._least:
            first = raised[min(raised)]
            raise EnvironmentFailure(f"{first}; it failed at all {n} points, so there is nothing to learn")
        return Values(table[:, 0], failed, raised[max(raised)] if raised else "", table[:, 1:])

    def _column(self, returned: Sequence[Any], n: int) -> Array:
        try:
            values = as_float64(returned[0] if self._vectorized else returned)
        except InputError as problem:
            raise InputError("the function must return one number per point") from problem
        if values.size != n:
            raise InputError(
                f"the function must return one number per point, but returned an array of shape "
                f"{values.shape} for {n} points"
            )
        return values.reshape(n, 1)


@dataclass(frozen=True)
class PointsJob:
    """Calls of one generation."""

    seed: int
    generation: int
    """Number of the generation over all searches, starting at 0."""
    arrays: tuple[NDArray[Any], ...]
    """Arguments of the function: points, shape (n, dimension), and others. The function may modify them."""
    name: str = ""
    """Name of a single point."""

    def describe(self, item: int) -> str:
        """Return a description of an item."""
        return self.name or f"point {item}, generation {self.generation + 1}"


class PointsWork:
    """Calls the function.

    The result of an item is the returned value, or NaN for an exception in ``catch``. If ``vectorized``, the
    whole generation is one item; otherwise each point is an item.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        vectorized: bool,
        tensors: bool,
        catch: tuple[type[BaseException], ...],
        watched: bool,
    ) -> None:
        self._function, self._vectorized, self._tensors, self._catch = function, vectorized, tensors, catch
        self._keeping = generators_kept if watched else nullcontext

    def info(self) -> dict[str, Any]:
        return {"slots": _SLOTS}

    def begin(self, job: PointsJob) -> None:
        self._job = job
        self._arguments: Sequence[Any] = (
            [torch.from_numpy(array) for array in job.arrays] if self._tensors else job.arrays
        )
        # Seeds depend only on the point, not on the worker.
        members = np.arange(len(job.arrays[0]))
        self._seeds = seeds(job.seed, Stream.EPISODE, job.generation, members).tolist()

    def run(self, feed: Feed) -> None:
        with self._keeping():
            while items := feed.take(1, wait=True):
                feed.put(items[0], self._call(items[0], feed))

    def close(self) -> None:
        """Nothing to free."""

    def _call(self, item: int, feed: Feed) -> Any:
        whole = self._vectorized
        seed_generators(self._seeds[item])
        try:
            value = self._function(*(self._arguments if whole else [part[item] for part in self._arguments]))
        except (Exception, SystemExit) as problem:
            who = f"generation {self._job.generation + 1}" if whole else self._job.describe(item)
            message = f"{who}: the function raised {in_words(problem)}"
            if not isinstance(problem, self._catch):
                raise EnvironmentFailure(message) from problem
            feed.put_raised(item, message)
            return np.full(len(self._arguments[0]), math.nan) if whole else math.nan
        if isinstance(self._function, ConstrainedFunction):
            return self._function.read(value, len(self._arguments[0]) if whole else 1)
        # Sending a tensor through a pipe would create a file of shared memory.
        if isinstance(value, Tensor) and holds_numbers(value):
            value = value.detach().to("cpu", torch.float64).numpy()
        return value if whole else _number(value)


def _number(value: Any) -> float:
    try:
        return as_float(value)
    except TypeError:
        raise InputError(
            f"the function must return one number per point, not {reprlib.repr(value)}"
        ) from None
