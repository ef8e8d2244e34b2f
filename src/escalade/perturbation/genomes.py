"""Members as lists of mutations, each rebuilt from the first center or from a cached parent.

Such et al. 2017, "Deep neuroevolution: genetic algorithms are a competitive alternative for training deep
neural networks for reinforcement learning", arXiv 1712.06567, section 3.1: a network of millions of
parameters is sent as a few numbers.
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
    """Mutation of all parameters: ``scale`` times perturbation ``number`` of ``generation`` is added."""

    generation: int
    number: int
    scale: float


Genome = tuple[Mutation, ...]
"""All mutations since the first center, in order."""


@dataclass(frozen=True)
class GenomePopulation(Addressed):
    """Members ``start + sum of their mutations``, each sum taken from left to right in the type of ``start``.

    ``start`` has shape (dimension,). Each process caches the parents of the members that it wrote. Writing a
    member then costs one perturbation, plus one for each ancestor that is not cached.
    """

    start: Center
    source: NoiseSource
    seed: int
    parents: tuple[Genome, ...]
    children: tuple[tuple[int, Mutation], ...]
    """Number of the parent and the mutation, for each member."""
    identity: str
    """Identity of ``start`` and of the noise: equal only if both are equal."""
    antithetic: bool = False

    @classmethod
    def of(
        cls, genomes: Iterable[Genome], start: Center, source: NoiseSource, seed: int, identity: str
    ) -> GenomePopulation:
        """Return the population of these members. Each genome needs at least one mutation."""
        numbers: dict[Genome, int] = {}
        children = tuple((numbers.setdefault(g[:-1], len(numbers)), g[-1]) for g in genomes)
        return cls(start, source, seed, tuple(numbers), children, identity)

    def genome(self, member: int) -> Genome:
        """Return all mutations of ``member``."""
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
        """Return the parameters of ``genome``, and cache them."""
        if not genome:
            return self.start
        with _lock:
            lengths = range(len(genome), 0, -1)
            cached = (n for n in lengths if (self.identity, self.seed, genome[:n]) in _parents)
            length = next(cached, 0)  # of the nearest ancestor
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
"""This process's cache of parents' parameters: of two generations at most, the last used at the end."""
_lock = threading.Lock()  # some engines write members on several threads
