"""The calls of a function that is optimised: points in, values out, in this process or in workers."""

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

_SLOTS = 1  # points in a worker's hands: a call that is worth a process takes longer than the pipe's delay


@dataclass(frozen=True)
class Values:
    """The values of a function at some points."""

    numbers: Array
    """Shape (n,); NaN where the function raised."""
    failed: NDArray[np.bool_]
    """Points at which it raised what is caught, shape (n,)."""
    words: str
    """The last of those exceptions; empty if there was none."""
    constraints: Array = field(default_factory=partial(np.empty, (0, 0)))
    """Numbers that are at most 0 if a constraint is met, shape (n, constraints)."""

    def part(self, rows: slice) -> Values:
        """Return the values of some of the points."""
        failed = self.failed[rows]
        words = self.words if self.words and failed.any() else ""
        return Values(self.numbers[rows], failed, words, self.constraints[rows])


def check_function(function: Any, takes: str) -> None:
    """Refuse what cannot be called, such as an x0 in the function's place.

    Raises:
        InputError: it cannot.
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
        numbered: whether it takes the number of its search beside each point, too.
        tensors: whether points are tensors for it.
        catch: exceptions of the function that count as NaN does.
        seed: what the global random number generators are seeded from, for every call.
        watched: whether other code of the user's runs between generations: the generators are then put back
            after each of them, and not only at the end.
        least: points that may all fail; where all of more than these did, the function has a mistake.

    Raises:
        InputError: an argument is impossible, or the function cannot be sent to processes.
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
                f"vectorized=True gives the whole generation to one call, so workers={workers} would idle: "
                "leave one of them out"
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

    def values(self, parts: Sequence[Array], numbers: Sequence[int]) -> Values:
        """Call the function for the points of several searches, each of shape (n, dimension).

        Raises:
            EnvironmentFailure: it raised what is not to be caught, or it has raised at every point so far.
            InputError: it gave no number.
        """
        arrays: tuple[NDArray[Any], ...] = (np.concatenate(parts),)  # a copy
        if self._numbered:
            arrays += (np.repeat(np.array(numbers, dtype=np.int64), [len(part) for part in parts]),)
        n, job = len(arrays[0]), PointsJob(self._seed, self._generations, arrays)
        results = self.engine.run(job, 1 if self._vectorized else n)
        given: Any = results.in_order()
        raised = results.raised
        table = stacked(given) if self._constrained else self._column(given, n)
        failed = np.zeros(n, np.bool_)
        if raised:
            failed[slice(None) if self._vectorized else list(raised)] = True
            self._failures += int(failed.sum())
        self._generations += 1
        self._evaluations += n
        if self._failures == self._evaluations > self._least:
            first = raised[min(raised)]
            raise EnvironmentFailure(f"{first}, and so it was at all {n} points: there is nothing to learn")
        return Values(table[:, 0], failed, raised[max(raised)] if raised else "", table[:, 1:])

    def _column(self, given: Sequence[Any], n: int) -> Array:
        try:
            values = as_float64(given[0] if self._vectorized else given)
        except InputError as problem:
            raise InputError("the function gave no numbers: it must give one number a point") from problem
        if values.size != n:
            raise InputError(
                f"the function gave an array of shape {values.shape} for {n} points: it must give one number "
                "a point"
            )
        return values.reshape(n, 1)


@dataclass(frozen=True)
class PointsJob:
    """The calls of one generation."""

    seed: int
    generation: int
    """Number of the generation over all searches, 0 for the first."""
    arrays: tuple[NDArray[Any], ...]
    """Points, shape (n, dimension), and what else the function takes; they become its own."""

    def describe(self, item: int) -> str:
        """Return an item in words."""
        return f"point {item}, generation {self.generation + 1}"


class PointsWork:
    """Calls the function; an item's result is what it gave, or NaN if it raised one of ``catch``.

    If ``vectorized``, the only item is the whole generation, in one call; else each point is an item.
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
        self._given: Sequence[Any] = (
            [torch.from_numpy(array) for array in job.arrays] if self._tensors else job.arrays
        )
        # A seed is a function of whom it is for, so it is the same wherever the point is tried.
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
            value = self._function(*(self._given if whole else [part[item] for part in self._given]))
        except (Exception, SystemExit) as problem:
            who = f"generation {self._job.generation + 1}" if whole else self._job.describe(item)
            said = f"{who}: the function raised {in_words(problem)}"
            if not isinstance(problem, self._catch):
                raise EnvironmentFailure(said) from problem
            feed.put_raised(item, said)
            return np.full(len(self._given[0]), math.nan) if whole else math.nan
        if isinstance(self._function, ConstrainedFunction):
            return self._function.read(value, len(self._given[0]) if whole else 1)
        # A tensor would go through a pipe as a file of shared memory.
        if isinstance(value, Tensor) and holds_numbers(value):
            value = value.detach().to("cpu", torch.float64).numpy()
        return value if whole else _number(value)


def _number(value: Any) -> float:
    try:
        return as_float(value.item() if isinstance(value, np.ndarray) else value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        said = f"the function gave {reprlib.repr(value)}: it must give one number a point"
        raise InputError(said) from None
