"""Members with low-rank noise, as the factors of their matrices: one member, or several in a batch."""

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
    """A low-rank member as the input of a fast forward pass: the center and the numbers of its noise."""

    center: Center
    numbers: Vector
    sign: int
    """+1, or -1 for the mirrored member of a pair, or 0 for the center itself."""
    scale: float = 1.0
    """Scale of the noise."""

    def factors(self, part: Part) -> tuple[Vector, Vector]:
        """Return ``sign * scale / sqrt(r) * A^T``, shape (r, m), and ``B^T``, shape (r, n)."""
        a, b = part.factors(self.numbers)
        return a * np.float32(self.sign * self.scale / math.sqrt(part.rank)), b

    def write(self, part: Part, out: Center) -> None:
        """Write the parameter's values into ``out``, shape (size,)."""
        part.write(self.numbers, self.sign * self.scale, out)
        out += self.center[part.stretch]


@dataclass(frozen=True)
class Together:
    """Several low-rank members for one call: :class:`Member` with a leading axis of k members.

    The fields are arrays, or tensors of one device.
    """

    center: Any
    numbers: Any
    """Numbers of the members' noise, shape (k, length)."""
    signs: Any
    """:attr:`Member.sign` of each member, shape (k,), float32."""
    scale: float

    def factors(self, part: Part) -> tuple[Any, Any]:
        """Return :meth:`Member.factors` of each member, shapes (k, r, m) and (k, r, n)."""
        a, b = part.factors(self.numbers)
        weights = self.signs * (self.scale / math.sqrt(part.rank))
        return a * weights[:, None, None], b

    def parameters(self, part: Part) -> Any:
        """Return each member's values of a parameter with full noise, shape (k, size), float32."""
        values = part.numbers(self.numbers) * (self.signs[:, None] * self.scale)
        values += self.center[part.stretch]
        return values


def member_of(source: LowRank, population: Population, member: int) -> Member:
    """Return a member as its factors.

    Raises:
        InputError: the population's noise is not low-rank.
    """
    if isinstance(population, CenterPopulation):
        zeros = source.room(source.length)
        zeros[:] = 0.0
        return Member(population.center, zeros, 0)
    gaussian, draws = _low_rank(population)
    number, sign = gaussian.perturbation(member)
    return Member(gaussian.center, draws.numbers(number), sign, float(gaussian.scale))


def members_of(source: LowRank, population: Population, members: Sequence[int]) -> Together:
    """Return several members as their factors.

    Raises:
        InputError: the population's noise is not low-rank.
    """
    gaussian, draws = _low_rank(population)
    numbers, signs = gaussian.perturbations(members)
    return Together(gaussian.center, draws.rows(numbers), source.placed(signs), float(gaussian.scale))


def _low_rank(population: Population) -> tuple[GaussianPopulation, LowRankDraws]:
    if isinstance(population, GaussianPopulation) and isinstance(population.draws, LowRankDraws):
        return population, population.draws
    raise InputError(f"members of {type(population).__name__} do not have the run's low-rank noise")


def member_pieces(population: Population, member: int) -> Iterator[Center]:
    """Yield a member's parameters in pieces: one per parameter if the noise is low-rank, else one in all."""
    if isinstance(population, CenterPopulation):
        yield population.center
        return
    draws = population.draws if isinstance(population, GaussianPopulation) else None
    if not isinstance(draws, LowRankDraws) or not draws.source.rank:
        room = draws.source.room(1, population.dimension) if isinstance(draws, LowRankDraws) else None
        yield write_all(population, [member], room)[0]
        return
    factored = member_of(draws.source, population, member)
    for part in draws.source.parts:
        out = draws.source.room(part.size, dtype=population.dtype)
        factored.write(part, out)
        yield out
