"""Members with noise of low rank, by the factors of their matrices: one, or several together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from escalade.errors import InputError
from escalade.perturbation.low_rank import LowRank, LowRankDraws, Part
from escalade.perturbation.population import (
    Center,
    CenterPopulation,
    GaussianPopulation,
    Population,
    Vector,
    write_all,
)


@dataclass(frozen=True)
class Member:
    """A member of low rank as it travels to a fast forward pass: the centre, and the numbers of its noise."""

    center: Center
    numbers: Vector
    sign: int
    """-1 for the mirrored end of a pair, 0 for the centre itself."""
    scale: float = 1.0
    """Scale of the noise."""

    def factors(self, part: Part) -> tuple[Vector, Vector]:
        """``sign * scale / sqrt(r) * A^T``, shape (r, m), and ``B^T``, shape (r, n)."""
        a, b = part.factors(self.numbers)
        return a * np.float32(self.sign * self.scale / math.sqrt(part.rank)), b

    def write(self, part: Part, out: Center) -> None:
        """Write the parameter itself into ``out``, shape (size,)."""
        part.write(self.numbers, self.sign * self.scale, out)
        out += self.center[part.stretch]


@dataclass(frozen=True)
class Together:
    """Some members of low rank for one call: :class:`Member` with an axis of k members first.

    Arrays, or tensors of one device.
    """

    center: Any
    numbers: Any
    """Numbers of the members' noise, shape (k, length)."""
    signs: Any
    """Signs of the members, as :attr:`Member.sign`; shape (k,), float32."""
    scale: float

    def factors(self, part: Part) -> tuple[Any, Any]:
        """:meth:`Member.factors`, of shapes (k, r, m) and (k, r, n)."""
        a, b = part.factors(self.numbers)
        weights = self.signs * (self.scale / math.sqrt(part.rank))
        return a * weights[:, None, None], b

    def parameters(self, part: Part) -> Any:
        """The members' own of a parameter with full noise, shape (k, size), float32."""
        made = part.numbers(self.numbers) * (self.signs[:, None] * self.scale)
        made += self.center[part.stretch]
        return made


def member_of(source: LowRank, population: Population, member: int) -> Member:
    """A member as its factors.

    Raises:
        InputError: the population's noise is not the source's.
    """
    if isinstance(population, CenterPopulation):
        zeros = source.room(source.length)
        zeros[:] = 0.0
        return Member(population.center, zeros, 0)
    known, draws = _low_rank(population)
    number, sign = known.perturbation(member)
    return Member(known.center, draws.numbers(number), sign, float(known.scale))


def members_of(source: LowRank, population: Population, members: Sequence[int]) -> Together:
    """Some members as their factors.

    Raises:
        InputError: the population's noise is not the source's.
    """
    known, draws = _low_rank(population)
    numbers, signs = known.perturbations(members)
    return Together(known.center, draws.rows(numbers), source.placed(signs), float(known.scale))


def _low_rank(population: Population) -> tuple[GaussianPopulation, LowRankDraws]:
    if isinstance(population, GaussianPopulation) and isinstance(population.draws, LowRankDraws):
        return population, population.draws
    raise InputError(f"members of {type(population).__name__} do not have the run's low-rank noise")


def member_pieces(population: Population, member: int) -> Iterator[Center]:
    """A member's parameters, piece by piece: one for each parameter where the noise has low rank."""
    if isinstance(population, CenterPopulation):
        yield population.center
        return
    draws = population.draws if isinstance(population, GaussianPopulation) else None
    if not isinstance(draws, LowRankDraws):
        yield write_all(population, [member])[0]
        return
    given = member_of(draws.source, population, member)
    for part in draws.source.parts:
        out = draws.source.room(part.size, dtype=population.dtype)
        given.write(part, out)
        yield out
