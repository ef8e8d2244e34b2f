"""A source of noise, a generation's members, and how each is rebuilt from its address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

Vector = NDArray[np.float32]
Center = NDArray[np.floating]
"""Parameters: float32, or float64 where the strategy's first centre was."""
Weights = Sequence[float] | NDArray[np.floating]


class Draws(Protocol):
    """One generation's perturbations ``noise_0, noise_1, ...``, each of shape (dimension,).

    For strategies with a deviation of each parameter's own, they have
    ``weighted_square_sum(weights, shift, dtype)`` besides: ``sum_k weights[k] * (noise_k - shift)**2``, shape
    (dimension,), always added in the same order. ``shift`` has shape (dimension,) and the type of the sum;
    with None nothing is subtracted.
    """

    def write(self, number: int, scale: float | Center, out: Center) -> None:
        """Write ``scale * noise_number`` into ``out``, shape (dimension,), in the type of ``out``."""
        ...

    def weighted_sum(self, weights: Weights, dtype: DTypeLike = np.float32) -> Center:
        """``sum_k weights[k] * noise_k``, shape (dimension,), always added in the same order.

        A weight of zero skips its perturbation.
        """
        ...


class NoiseSource(Protocol):
    """A source of perturbations: standard normal numbers, a function of their address alone.

    A source that is large has an ``address`` besides: a small object that is pickled in its place within a
    population, and unpickles to the source that the process has.
    """

    def draw(self, seed: int, generation: int, count: int, dimension: int) -> Draws:
        """The ``count`` perturbations of a generation of the search with ``seed``.

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
        """Type of the members' numbers: float32 or float64."""
        ...

    @property
    def antithetic(self) -> bool:
        """True where members 2k and 2k + 1 are a mirrored pair."""
        ...

    def write(self, member: int, out: Center) -> None:
        """Write the parameters of ``member``, its number from 0, into ``out``, shape (dimension,)."""
        ...


class Around:
    """A dataclass of members around its ``center``, shape (dimension,)."""

    center: Center

    @property
    def dimension(self) -> int:
        return len(self.center)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        return self.center.dtype


class Addressed:
    """A dataclass whose ``source`` of noise is pickled as its address, and made anew where it arrives."""

    def __getstate__(self) -> dict[str, Any]:
        held: Any = self
        state = {field.name: getattr(held, field.name) for field in fields(held)}
        return state | {"source": getattr(held.source, "address", held.source)}


@dataclass(frozen=True)
class GaussianPopulation(Around, Addressed):
    """Members ``center + sign * scale * noise_k``, whose noise is a source's draws of this generation.

    ``scale`` is a number or a vector of shape (dimension,). With ``antithetic``, members 2k and
    2k + 1 have perturbation k with the signs +1 and -1; otherwise member k has perturbation k with the
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
        """Number of distinct perturbations: half the members where they come in mirrored pairs."""
        return self.size // 2 if self.antithetic else self.size

    @cached_property
    def draws(self) -> Draws:
        """The generation's distinct perturbations."""
        return self.source.draw(self.seed, self.generation, self.distinct, self.dimension)

    def perturbation(self, member: int) -> tuple[int, int]:
        """The number of the member's perturbation, and its sign: +1, or -1 at the mirrored end of a pair."""
        number, mirrored = divmod(member, 2) if self.antithetic else (member, 0)
        return number, -1 if mirrored else 1

    def perturbations(self, members: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers of some members' perturbations, and their signs, shape (k,) each."""
        numbers, signs = np.transpose([self.perturbation(member) for member in members])
        return numbers, signs

    def write(self, member: int, out: Center) -> None:
        number, sign = self.perturbation(member)
        self.draws.write(number, self.scale, out)
        # Mirrored members subtract the very same product, so a pair's mean is the centre.
        (np.subtract if sign < 0 else np.add)(self.center, out, out=out)


@dataclass(frozen=True)
class DensePopulation:
    """Members written out, shape (size, dimension): for strategies whose members have no address."""

    vectors: Center
    antithetic: bool = False
    """True where they are mirrored pairs, one behind the other."""

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
    """A population of one: the centre, shape (dimension,), unperturbed."""

    center: Center
    size: int = 1
    antithetic: bool = False

    def write(self, member: int, out: Center) -> None:
        out[:] = self.center


def shared_center(population: Population | None, center: Center | None) -> Center | None:
    """The population's own centre, where it has one; otherwise ``center``, the unperturbed one."""
    found: Center | None = getattr(population, "center", center)
    return found


def write_all(population: Population, members: Sequence[int] | None = None, into: Any = None) -> Center:
    """The parameters of ``members`` (by default of all), shape (n, dimension), in the population's type.

    With ``into`` they are written there: an array, or a tensor where the population's noise is one.
    """
    if isinstance(population, DensePopulation) and members is None and into is None:
        return population.vectors.copy()
    members = range(population.size) if members is None else members
    written = np.empty((len(members), population.dimension), dtype=population.dtype) if into is None else into
    together = None if isinstance(written, np.ndarray) else getattr(population, "write_rows", None)
    if together is not None:
        together(members, written)
        return cast("Center", written)
    for row, member in zip(written, members, strict=True):
        population.write(member, row)
    return written
