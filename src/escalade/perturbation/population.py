"""Interfaces of noise sources and populations, and populations that are rebuilt from addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

Vector = NDArray[np.float32]
Center = NDArray[np.floating]
"""Parameters: float64 if the strategy's first center was, else float32."""
SMALL = 2**11  # parameters up to which one call for many perturbations is faster than one for each
Weights = Sequence[float] | NDArray[np.floating]


class Draws(Protocol):
    """One generation's perturbations ``noise_0, noise_1, ...``, each of shape (dimension,).

    Strategies with a standard deviation per parameter also need ``weighted_square_sum(weights, shift,
    dtype)``, which returns ``sum_k weights[k] * (noise_k - shift)**2``, shape (dimension,), always added in
    the same order. ``shift`` has shape (dimension,) and the dtype of the sum; None subtracts nothing.
    """

    def write(self, number: int, scale: float | Center, out: Center) -> None:
        """Write ``scale * noise_number`` into ``out``, shape (dimension,), in the dtype of ``out``."""
        ...

    def weighted_sum(self, weights: Weights, dtype: DTypeLike = np.float32) -> Center:
        """Return ``sum_k weights[k] * noise_k``, shape (dimension,), always added in the same order.

        Perturbations with a weight of zero are skipped.
        """
        ...


class NoiseSource(Protocol):
    """Source of perturbations: standard normal numbers that are a function of their address alone.

    A large source also has an ``address``: a small object that is pickled in place of the source as part of
    a population, and unpickles to the receiving process's copy of the source.
    """

    def draw(self, seed: int, generation: int, count: int, dimension: int) -> Draws:
        """Return the ``count`` perturbations of a generation of the search with ``seed``.

        Perturbation k does not depend on ``count``.
        """
        ...


class Population(Protocol):
    """The members that a strategy proposes, small enough to send to every worker once per generation."""

    @property
    def size(self) -> int:
        """Number of members."""
        ...

    @property
    def dimension(self) -> int:
        """Parameters of one member."""
        ...

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Dtype of the members' parameters: float32 or float64."""
        ...

    @property
    def antithetic(self) -> bool:
        """True if members 2k and 2k + 1 are mirrored pairs."""
        ...

    def write(self, member: int, out: Center) -> None:
        """Write the parameters of ``member``, numbered from 0, into ``out``, shape (dimension,)."""
        ...


class Around:
    """Base of dataclasses of members around a ``center``, shape (dimension,)."""

    center: Center

    @property
    def dimension(self) -> int:
        return len(self.center)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        return self.center.dtype


class Addressed:
    """Base of dataclasses whose noise ``source`` is pickled as its address, if it has one."""

    def __getstate__(self) -> dict[str, Any]:
        held: Any = self
        state = {field.name: getattr(held, field.name) for field in fields(held)}
        return state | {"source": getattr(held.source, "address", held.source)}


@dataclass(frozen=True)
class GaussianPopulation(Around, Addressed):
    """Members ``center + sign * scale * noise_k``, whose noise is the source's draws of this generation.

    ``scale`` is a number or a vector of shape (dimension,). With ``antithetic``, members 2k and
    2k + 1 have perturbation k with the signs +1 and -1. Otherwise member k has perturbation k with the
    sign +1. Salimans et al. 2017, algorithm 2 and section 2.1.
    """

    center: Center
    scale: float | Center
    source: NoiseSource
    seed: int
    generation: int
    size: int
    antithetic: bool = True

    @property
    def distinct(self) -> int:
        """Number of distinct perturbations: half the members if they are mirrored pairs, else all."""
        return self.size // 2 if self.antithetic else self.size

    @cached_property
    def draws(self) -> Draws:
        """The generation's distinct perturbations."""
        return self.source.draw(self.seed, self.generation, self.distinct, self.dimension)

    def perturbation(self, member: int) -> tuple[int, int]:
        """Return the number of the member's perturbation, and its sign: -1 if mirrored, else +1."""
        number, mirrored = divmod(member, 2) if self.antithetic else (member, 0)
        return number, -1 if mirrored else 1

    def perturbations(self, members: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers and the signs of several members' perturbations, shape (k,) each."""
        numbers, signs = np.transpose([self.perturbation(member) for member in members])
        return numbers, signs

    def write(self, member: int, out: Center) -> None:
        number, sign = self.perturbation(member)
        self.draws.write(number, self.scale, out)
        # Mirrored members subtract exactly the same product, so that a pair's mean is the center.
        (np.subtract if sign < 0 else np.add)(self.center, out, out=out)

    def write_rows(self, members: Sequence[int], out: Any) -> None:
        """Write members into the rows of ``out``, shape (k, dimension): the same numbers as :meth:`write`."""
        gather = getattr(self.draws, "gather", None)
        if gather is None or self.dimension > SMALL:
            write_each(self, members, out)
            return
        numbers, signs = self.perturbations(members)
        np.multiply(gather(numbers), self.scale, out=out, dtype=out.dtype)
        out *= signs.astype(out.dtype)[:, None]
        out += self.center


@dataclass(frozen=True)
class DensePopulation:
    """Members as an array, shape (size, dimension), for strategies whose members have no address."""

    vectors: Center
    antithetic: bool = False
    """True if members 2k and 2k + 1 are mirrored pairs."""

    @property
    def size(self) -> int:
        return len(self.vectors)

    @property
    def dimension(self) -> int:
        return int(self.vectors.shape[1])

    @property
    def dtype(self) -> np.dtype[np.floating]:
        return self.vectors.dtype

    def write(self, member: int, out: Center) -> None:
        out[:] = self.vectors[member]


@dataclass(frozen=True)
class CenterPopulation(Around):
    """Population of one: the unperturbed center, shape (dimension,)."""

    center: Center
    size: int = 1
    antithetic: bool = False

    def write(self, member: int, out: Center) -> None:
        out[:] = self.center


def shared_center(population: Population | None, center: Center | None) -> Center | None:
    """Return the population's own center if it has one, else ``center``."""
    found: Center | None = getattr(population, "center", center)
    return found


def write_all(population: Population, members: Sequence[int] | None = None, into: Any = None) -> Center:
    """Return the parameters of ``members`` (default: all), shape (n, dimension), in the population's dtype.

    ``into`` is the memory to write to: an array, or a tensor if the population's noise is on a device.
    """
    if isinstance(population, DensePopulation) and members is None and into is None:
        return population.vectors.copy()
    members = range(population.size) if members is None else members
    written = np.empty((len(members), population.dimension), dtype=population.dtype) if into is None else into
    together = getattr(population, "write_rows", None)
    if together is not None:
        together(members, written)
    else:
        write_each(population, members, written)
    return cast("Center", written)


def write_each(population: Population, members: Sequence[int], out: Any) -> None:
    """Write members into the rows of ``out``, shape (k, dimension), one after the other."""
    for row, member in zip(out, members, strict=True):
        population.write(member, row)
