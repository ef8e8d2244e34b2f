"""A worker's part in optimising a function: points in, values out."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from escalade.engines.base import Feed
from escalade.errors import EnvironmentFailure, InputError, in_words
from escalade.perturbation import Stream, seeds
from escalade.support.fitness import as_float, holds_numbers
from escalade.support.generators import generators_kept, seed_generators

Points = NDArray[np.float64]

_SLOTS = 1  # points in a worker's hands: a call that is worth a process takes longer than the pipe's delay


@dataclass(frozen=True)
class PointsJob:
    """One generation; ``points`` has shape (n, dimension) and becomes the function's own."""

    seed: int
    generation: int
    """Number of the generation over all searches, 0 for the first."""
    points: Points

    def describe(self, item: int) -> str:
        """An item in words."""
        return f"point {item}, generation {self.generation + 1}"


@dataclass(frozen=True)
class PointsSetup:
    """Everything a worker needs; calling it makes the work."""

    function: Callable[[Any], Any]
    vectorized: bool
    """True: the only item is the whole generation, in one call; else each point is an item."""
    tensors: bool
    catch: tuple[type[BaseException], ...]

    def __call__(self) -> PointsWork:
        return PointsWork(self)


class PointsWork:
    """Calls the function; an item's result is what it gave, or NaN where it raised one of ``catch``."""

    def __init__(self, setup: PointsSetup) -> None:
        self.setup = setup

    def info(self) -> dict[str, Any]:
        return {"slots": _SLOTS}

    def begin(self, job: PointsJob) -> None:
        self._job = job
        self._given = torch.from_numpy(job.points) if self.setup.tensors else job.points
        # A seed is a function of whom it is for, so it is the same wherever the point is tried.
        members = np.arange(len(job.points))
        self._seeds = seeds(job.seed, Stream.EPISODE, job.generation, members).tolist()

    def run(self, feed: Feed) -> None:
        with generators_kept():
            while items := feed.take(1, wait=True):
                feed.put(items[0], self._call(items[0], feed))

    def close(self) -> None:
        """Nothing to free."""

    def _call(self, item: int, feed: Feed) -> Any:
        whole = self.setup.vectorized
        seed_generators(self._seeds[item])
        try:
            value = self.setup.function(self._given if whole else self._given[item])
        except (Exception, SystemExit) as problem:
            who = f"generation {self._job.generation + 1}" if whole else self._job.describe(item)
            said = f"{who}: the function raised {in_words(problem)}"
            if not isinstance(problem, self.setup.catch):
                raise EnvironmentFailure(said) from problem
            feed.put_raised(item, said)
            return np.full(len(self._given), math.nan) if whole else math.nan
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
