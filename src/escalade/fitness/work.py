"""A worker's part in evolving a module: compute the fitness of members."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from escalade.engines.base import Feed
from escalade.errors import EnvironmentFailure, InputError, in_words, one_line, place_of
from escalade.perturbation import (
    CenterPopulation,
    NoiseSource,
    Population,
    Stream,
    seeds,
    shared_center,
)
from escalade.perturbation.device import device_of
from escalade.policies.population.buffers import Snapshot
from escalade.policies.population.held_module import HeldModule
from escalade.policies.population.layout import Layout, Vector
from escalade.policies.population.members import Members
from escalade.support.arrays import as_float, as_float64
from escalade.support.generators import generators_kept, seed_generators
from escalade.support.keywords import fixed_by

FitnessFunction = Callable[..., Any]

_OFFERED = ("seed", "generation")  # passed to a fitness function that has parameters of these names
_SLOTS = 4  # items queued in a worker: enough to hide the pipe's delay, few enough to share fairly


@dataclass(frozen=True)
class FitnessJob:
    """One generation, whose items are its members, ``batch`` at a time, then ``center`` if it is not None."""

    seed: int
    generation: int
    population: Population | None
    batch: int = 1
    center: Vector | None = None

    @property
    def batches(self) -> int:
        """Number of items that are members."""
        return -(-self.population.size // self.batch) if self.population else 0

    @property
    def items(self) -> int:
        """Number of all items."""
        return self.batches + (self.center is not None)

    def members(self, item: int) -> range:
        """Return the members of an item: an empty range if it is the center."""
        if self.population is None or item == self.batches:
            return range(0)
        return range(item * self.batch, min((item + 1) * self.batch, self.population.size))

    def individuals(self, item: int) -> tuple[Population, range]:
        """Return the population of an item, and the members' numbers in it."""
        members = self.members(item)
        if members and self.population is not None:
            return self.population, members
        assert self.center is not None  # otherwise there is no such item
        return CenterPopulation(self.center), range(1)

    def describe(self, item: int) -> str:
        """Describe the members of an item."""
        members = self.members(item)
        if not members:
            return f"the unperturbed module, generation {self.generation + 1}"
        first, last = members[0], members[-1]
        who = f"member {first}" if first == last else f"members {first} to {last}"
        return f"{who}, generation {self.generation + 1}"


@dataclass(frozen=True)
class FitnessSetup:
    """Everything a worker needs; calling it returns the work."""

    module: nn.Module
    layout: Layout
    fitness: FitnessFunction
    batched: bool
    perturbation: NoiseSource
    """Sent with the setup, so that the worker has the noise table before a population arrives."""
    reseed: bool
    """True to seed the global random number generators for every call; False if threads share them."""
    catch: tuple[type[BaseException], ...] = ()
    """Exceptions that make the fitness NaN instead of ending the run."""

    def __call__(self) -> FitnessWork:
        return FitnessWork(self)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the values of large evolved parameters, which every job replaces."""
        return vars(self) | {"module": self.layout.without_numbers(self.module)}


class FitnessWork:
    """Writes members into its own module, or into a batch, and calls the fitness function."""

    def __init__(self, setup: FitnessSetup) -> None:
        torch.set_num_threads(1)  # the rounding of a sum depends on the number of threads
        self.module = setup.layout.with_room(setup.module)
        self.setup = replace(setup, module=self.module)  # the original may be large
        self._held = HeldModule(self.module, setup.layout, setup.perturbation)
        device = device_of(setup.perturbation)
        self._on_mps = device is not None and device.type == "mps"
        self._parameters = list(nn.Module.parameters(self.module))
        self._kept = Snapshot(self.module, whole=True)  # so that no member sees changes made by the last
        self._offered = _named_parameters(setup.fitness)

    def info(self) -> dict[str, Any]:
        return {"slots": _SLOTS}

    def begin(self, job: FitnessJob) -> None:
        self.job = job
        center = shared_center(job.population, job.center)
        if self.setup.batched and center is not None:
            self._held.begin(center)

    def run(self, feed: Feed) -> None:
        with generators_kept() if self.setup.reseed else nullcontext(), torch.no_grad():
            while items := feed.take(1, wait=True):
                feed.put(items[0], self._evaluate(items[0], feed))

    def close(self) -> None:
        """Nothing to free."""

    def _evaluate(self, item: int, feed: Feed) -> list[list[float]]:
        """Return a row for each of an item's members, or for the center: fitness, then behavior if any."""
        members = self.job.members(item)
        individuals = self.job.individuals(item)
        keywords = self._keywords(members)
        self._kept.restore()
        for parameter in self._parameters:
            parameter.grad = None
        if self.setup.batched:
            argument: Any = Members(self._held, *individuals)
        else:
            population, (member,) = individuals
            self._held.write_member(population, member)
            argument = self.module
        try:
            value = self.setup.fitness(argument, **keywords)
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # sys.exit is one of them
            if isinstance(problem, self.setup.catch):
                feed.put_raised(item, in_words(problem))
                return [[math.nan]] * len(individuals[1])
            details = f"{one_line(problem)} ({self.job.describe(item)}; {place_of(problem)})"
            raise EnvironmentFailure(f"fitness raised {details}") from problem
        try:
            return _rows(value, len(individuals[1]), self.setup.batched)
        except EnvironmentFailure as wrong:
            raise EnvironmentFailure(f"{wrong} ({self.job.describe(item)})") from None

    def _keywords(self, members: range) -> dict[str, int]:
        job = self.job
        # A function of the member alone, so that the seed is the same on every worker.
        address = (
            (Stream.EPISODE, job.generation, members[0]) if members else (Stream.EVALUATION, job.generation)
        )
        seed = int(seeds(job.seed, *address))
        if self.setup.reseed:
            seed_generators(seed)
            if self._on_mps:
                torch.mps.manual_seed(seed)
        offered = {"seed": seed, "generation": job.generation}
        return {name: offered[name] for name in self._offered}


def _rows(value: Any, count: int, batched: bool) -> list[list[float]]:
    """Return a row for each of ``count`` members: the returned fitness, then the behavior's numbers.

    Raises:
        EnvironmentFailure: ``value`` has the wrong type or shape.
    """
    value, behaviors = _parted(value, batched)
    found = _numbers(value, count) if batched else [_number(value)]
    if behaviors is None:
        return [[number] for number in found]
    rows = _behaviors(behaviors if batched else [behaviors], count)
    return [[number, *row] for number, row in zip(found, rows, strict=True)]


def _parted(value: Any, batched: bool) -> tuple[Any, Any]:
    """Split a returned value into fitness and behaviors; the behaviors are None if not returned."""
    if not (isinstance(value, tuple) and len(value) == 2):
        return value, None
    if batched and isinstance(value[0], int | float | np.number):  # the fitness of a batch of two
        return value, None
    return value


def _number(value: Any) -> float:
    try:
        return as_float(value)
    except TypeError:
        raise EnvironmentFailure(f"fitness must return one number, not {_described(value)}") from None


def _numbers(value: Any, count: int) -> list[float]:
    try:
        array = as_float64(value)
    except InputError:
        array = None
    if array is None or array.shape != (count,):
        raise EnvironmentFailure(
            f"batched fitness must return shape ({count},), one number per member, not {_described(value)}"
        )
    return [float(number) for number in array]


def _behaviors(value: Any, count: int) -> list[list[float]]:
    try:
        plain = [part.detach().cpu().double() if isinstance(part, Tensor) else part for part in value]
        array = np.asarray([np.asarray(part, np.float64) for part in plain])
    except (TypeError, ValueError, RuntimeError):
        array = np.zeros(0)
    if array.ndim == 1 and len(array) == count:
        array = array[:, None]  # one number each
    if array.ndim != 2 or len(array) != count or not array.size:
        wanted = "a list of numbers" if count == 1 else f"{count} rows of numbers"
        raise EnvironmentFailure(f"the behavior that fitness returns must be {wanted}")
    return [[float(number) for number in row] for row in array]


def _described(value: Any) -> str:
    if isinstance(value, Tensor | np.ndarray):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    return "None" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"


def _named_parameters(fitness: FitnessFunction) -> list[str]:
    try:
        # The first parameter is the module, whatever its name.
        parameters = list(inspect.signature(fitness).parameters.values())[1:]
    except (TypeError, ValueError):  # some builtins have no signature
        return []
    fixed = fixed_by(fitness)
    return [part.name for part in parameters if part.name in _OFFERED and part.name not in fixed]
