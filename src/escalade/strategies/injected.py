"""Strategies that also learn from points that they did not draw, and from points told one by one.

Hansen 2011, "Injecting external solutions into CMA-ES", arXiv 1110.4181: a point is a step from the center,
shortened to at most ``sqrt(n) + 2 n / (n + 2)`` standard deviations, and ranked with the others.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from escalade.errors import InputError
from escalade.perturbation import DensePopulation
from escalade.strategies.sized import Matrix, SizedStrategy
from escalade.strategies.tensors import State, as_tensor


@dataclass
class _Single:
    """Points that were asked for one by one."""

    generation: int = -1
    drawn: int = 0
    """Points of that generation."""
    asked: int = 0
    """Points of all generations."""
    waiting: dict[int, Matrix] = field(default_factory=dict)
    told: list[tuple[Matrix, float]] = field(default_factory=list)


class InjectedStrategy(SizedStrategy):
    """A sized strategy that also learns from points from elsewhere, and from points told one by one.

    Its arguments, and the errors that it raises, are those of :class:`SizedStrategy`.
    """

    @abstractmethod
    def unshaped(self, y: Matrix) -> Matrix:
        """The noise of which :meth:`shaped` makes the steps ``y``, both (n, dimension). For subclasses."""

    def ask(self, inject: ArrayLike | Tensor | None = None) -> Tensor:
        """Return the generation's members, shape (population, dimension).

        Args:
            inject: points, shape (n, dimension), that take the place of the first n members.

        Raises:
            InputError: ``inject`` does not hold such points, or more of them than there are members.
        """
        if inject is not None:
            self._replace(_points(inject, self.dimension, "inject"))
        return super().ask()

    def tell(self, fitness: ArrayLike | Tensor, points: ArrayLike | Tensor | None = None) -> None:
        """Move on to the next generation, as :meth:`Strategy.tell` does.

        Args:
            fitness: shape (population,).
            points: what has this fitness, shape (population, dimension); the members of :meth:`ask` if not
                given. They need not have been asked for.

        Raises:
            InputError: as :meth:`Strategy.tell`, or ``points`` are of another shape.
        """
        if points is not None:
            given = _points(points, self.dimension, "points")
            if len(given) != self.population_size:
                raise InputError(f"points are {len(given)}, but a generation has {self.population_size}")
            self._replace(given)
            self._asked = True
        super().tell(fitness)

    def ask_one(self) -> tuple[int, Tensor]:
        """Return a number and a point, shape (dimension,), for evaluations that end in any order.

        Points can be asked for at any time; each is drawn from the distribution of the moment.
        """
        single = self._single
        if single.generation != self.generation:
            single.generation, single.drawn = self.generation, 0
        single.drawn, single.asked = single.drawn + 1, single.asked + 1
        step = self.shaped(self.noise(single.drawn, self.generation)[-1:])[0]
        center = self.center.numpy()
        point = (center + self.step_size * step).astype(center.dtype)
        single.waiting[single.asked] = point
        return single.asked, torch.from_numpy(point.copy())

    def tell_one(self, number: int, fitness: float) -> None:
        """Take the fitness of a point of :meth:`ask_one`; a generation ends with each ``population`` of them.

        Raises:
            InputError: the number is not that of such a point, or its fitness was told before.
        """
        single = self._single
        if number not in single.waiting:
            raise InputError(f"number {number} is not waited for: tell_one takes each of ask_one's once")
        single.told.append((single.waiting.pop(number), float(fitness)))
        if len(single.told) >= self.population_size:
            told, single.told = single.told, []
            self.tell([value for _, value in told], points=np.stack([point for point, _ in told]))

    @cached_property
    def _single(self) -> _Single:
        return _Single()

    def _replace(self, points: Matrix) -> None:
        """Put points, shape (n, dimension), in the place of the first members of this generation."""
        if len(points) > self.population_size:
            raise InputError(f"{len(points)} points are more than the {self.population_size} members")
        count, n, center = len(points), self.dimension, self.center.numpy()
        z, y = (part.copy() for part in self.draw())
        y[:count] = (points - center) / self.step_size
        z[:count] = self.unshaped(y[:count])
        longest = math.sqrt(n) + 2 * n / (n + 2)
        lengths = np.linalg.norm(z[:count], axis=1, keepdims=True)
        shorter = np.minimum(1.0, longest / np.maximum(lengths, 1e-300))
        z[:count], y[:count] = shorter * z[:count], shorter * y[:count]
        self._drawn = self.generation, z, y
        vectors = self.members().vectors
        vectors[:count] = points
        self._sampled = DensePopulation(vectors)

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.__dict__.pop("_single", None)


def _points(given: ArrayLike | Tensor, dimension: int, name: str) -> NDArray[np.float64]:
    points = as_tensor(given, name).cpu().double().numpy()
    if points.ndim != 2 or points.shape[1] != dimension or not np.isfinite(points).all():
        raise InputError(f"{name} of shape {points.shape} must be finite points of shape (n, {dimension})")
    return points
