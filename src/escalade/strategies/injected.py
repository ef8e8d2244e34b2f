"""Strategies that also learn from injected points, and from points evaluated one at a time.

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
from escalade.support.arrays import as_float


@dataclass
class _SinglePoints:
    """Points from :meth:`InjectedStrategy.ask_one`."""

    generation: int = -1
    drawn: int = 0
    """Points of that generation."""
    asked: int = 0
    """Points of all generations."""
    waiting: dict[int, Matrix] = field(default_factory=dict)
    told: list[tuple[Matrix, float]] = field(default_factory=list)


class InjectedStrategy(SizedStrategy):
    """A sized strategy that also learns from injected points, and from points evaluated one at a time.

    The arguments and errors are those of :class:`SizedStrategy`.
    """

    @abstractmethod
    def unshaped(self, y: Matrix) -> Matrix:
        """Invert :meth:`shaped`: return the noise of the steps ``y``, both of shape (n, dimension).

        Subclasses implement this.
        """

    def ask(self, inject: ArrayLike | Tensor | None = None) -> Tensor:
        """Return this generation's members, shape (population, dimension).

        Args:
            inject: points, shape (n, dimension), that replace the first n members.

        Raises:
            InputError: ``inject`` has another shape, is not finite, or holds more points than members.
        """
        if inject is not None:
            self._replace(_points(inject, self.dimension, "inject"))
        return super().ask()

    def tell(self, fitness: ArrayLike | Tensor, points: ArrayLike | Tensor | None = None) -> None:
        """Update the search distribution and start a new generation, as :meth:`Strategy.tell` does.

        Args:
            fitness: shape (population,).
            points: the points with this fitness, shape (population, dimension), from any source; None means
                the members returned by :meth:`ask`.

        Raises:
            InputError: as :meth:`Strategy.tell`, or ``points`` are of another shape.
        """
        if points is not None:
            injected = _points(points, self.dimension, "points")
            if len(injected) != self.population_size:
                raise InputError(f"points are {len(injected)}, but a generation has {self.population_size}")
            self._replace(injected)
            self._asked = True
        super().tell(fitness)

    def ask_one(self) -> tuple[int, Tensor]:
        """Return a number and a point, shape (dimension,), for evaluations that finish in any order.

        This can be called at any time. Each point is drawn from the current distribution.
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
        """Record the fitness of a point from :meth:`ask_one`.

        Every ``population`` of them end a generation.

        Raises:
            InputError: the number is unknown or already used, or the fitness is not a number.
        """
        single = self._single
        if number not in single.waiting:
            raise InputError(
                f"number {number} is unknown or already used; call tell_one once for each number from ask_one"
            )
        try:
            value = as_float(fitness)
        except TypeError:
            raise InputError(f"fitness must be a number, not {fitness!r:.60}") from None
        single.told.append((single.waiting.pop(number), value))
        if len(single.told) >= self.population_size:
            told, single.told = single.told, []
            self.tell([value for _, value in told], points=np.stack([point for point, _ in told]))

    @cached_property
    def _single(self) -> _SinglePoints:
        return _SinglePoints()

    def _replace(self, points: Matrix) -> None:
        """Replace the first members of this generation by points, shape (n, dimension)."""
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


def _points(values: ArrayLike | Tensor, dimension: int, name: str) -> NDArray[np.float64]:
    points = as_tensor(values, name).cpu().double().numpy()
    if points.ndim != 2 or points.shape[1] != dimension or not np.isfinite(points).all():
        raise InputError(f"{name} of shape {points.shape} must be finite points of shape (n, {dimension})")
    return points
