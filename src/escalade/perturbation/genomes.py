"""Members that are lists of mutations: each is rebuilt from the first centre, or from a parent known here.

Such et al. 2017, "Deep neuroevolution: genetic algorithms are a competitive alternative for training deep
neural networks for reinforcement learning", arXiv 1712.06567, section 3.1: a network of millions of
parameters travels as a few numbers.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from escalade.perturbation.population import Addressed, Center, NoiseSource


class Mutation(NamedTuple):
    """``scale`` times perturbation ``number`` of ``generation``, added to all parameters."""

    generation: int
    number: int
    scale: float


Genome = tuple[Mutation, ...]
"""All mutations since the first centre, in their order."""


@dataclass(frozen=True)
class GenomePopulation(Addressed):
    """Members ``start + sum of their mutations``, each sum taken from left to right in the type of ``start``.

    ``start`` has shape (dimension,). A process keeps the parents of the members that it wrote, so that a
    child costs one perturbation, and one more for each ancestor that is not known there.
    """

    start: Center
    source: NoiseSource
    seed: int
    parents: tuple[Genome, ...]
    children: tuple[tuple[int, Mutation], ...]
    """Number of the parent and the mutation, for each member."""
    identity: str
    """Identity of ``start`` and of the noise: the same only where both are the same."""
    antithetic: bool = False

    @classmethod
    def of(
        cls, genomes: Iterable[Genome], start: Center, source: NoiseSource, seed: int, identity: str
    ) -> GenomePopulation:
        """The population of these members, each of which has one mutation or more."""
        numbers: dict[Genome, int] = {}
        children = tuple((numbers.setdefault(g[:-1], len(numbers)), g[-1]) for g in genomes)
        return cls(start, source, seed, tuple(numbers), children, identity)

    def genome(self, member: int) -> Genome:
        """All mutations of ``member``."""
        parent, last = self.children[member]
        return (*self.parents[parent], last)

    @property
    def size(self) -> int:
        return len(self.children)

    @property
    def dimension(self) -> int:
        return len(self.start)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        return self.start.dtype

    def write(self, member: int, out: Center) -> None:
        parent, last = self.children[member]
        out[:] = self._parent(self.parents[parent])
        self._add((last,), out)

    def _parent(self, genome: Genome) -> Center:
        """The parameters that ``genome`` makes; kept."""
        if not genome:
            return self.start
        with _lock:
            lengths = range(len(genome), 0, -1)
            kept = (n for n in lengths if (self.identity, self.seed, genome[:n]) in _parents)
            length = next(kept, 0)  # of the nearest ancestor
            found = _parents[self.identity, self.seed, genome[:length]] if length else self.start
        if length < len(genome):
            found = found.copy()
            self._add(genome[length:], found)
            found.flags.writeable = False
        with _lock:
            _parents[self.identity, self.seed, genome] = found
            _parents.move_to_end((self.identity, self.seed, genome))
            while len(_parents) > 2 * len(self.parents):
                _parents.popitem(last=False)
        return found

    def _add(self, mutations: Genome, out: Center) -> None:
        noise = np.empty_like(out)
        for generation, number, scale in mutations:
            draws = self.source.draw(self.seed, generation, number + 1, self.dimension)
            draws.write(number, scale, noise)
            out += noise


_parents: OrderedDict[tuple[str, int, Genome], Center] = OrderedDict()
"""Parameters of parents, kept by this process: of two generations at most, the last used at the end."""
_lock = threading.Lock()  # members are written by several threads where the engine has them
