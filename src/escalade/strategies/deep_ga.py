"""Deep GA, a genetic algorithm for the weights of networks.

Such et al. 2017, "Deep neuroevolution: genetic algorithms are a competitive alternative for training deep
neural networks for reinforcement learning", arXiv 1712.06567, algorithm 1.
"""

from __future__ import annotations

import secrets
from typing import Unpack

import numpy as np
import torch

from escalade.errors import InputError
from escalade.perturbation import Stream, hash64
from escalade.perturbation.genomes import Genome, GenomePopulation, Mutation
from escalade.strategies.base import Common, Fitness, Strategy
from escalade.strategies.schedules import Rate, parse_sigma
from escalade.strategies.tensors import Start, State
from escalade.support.numbers import whole_number


class DeepGA(Strategy):
    """A genetic algorithm with mutation and no crossover: the best members survive and have children.

    The first members of a generation are the elites, unchanged. The others are ``parent + sigma * noise``,
    with a parent drawn from the ``parents`` best of the last generation. The elites are the members with the
    best mean fitness over all generations that they were in. The center is the best elite of two or more
    generations, so that one lucky evaluation does not decide. (In the paper the ten best of a generation are
    evaluated in 30 more episodes instead.) A member is a list of addresses of noise, for any number of
    parameters.

    Args:
        x0: center of the first generation, shape (dimension,).
        population: members per generation, including the elites.
        sigma: standard deviation of a mutation: a number, a schedule, or its text.
        parents: members that have children (T in the paper); None means a twentieth, at least 2.
        elites: members that survive; None means as many as parents, at most 10.
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
    """

    adapted = ("start", "sums", "counts")
    elitist = True
    grows = False  # a member's parent is drawn by the member's number
    compares_generations = True  # the elites' mean fitness with the new members' fitness

    def __init__(
        self,
        x0: Start,
        population: int = 64,
        sigma: Rate = 0.1,
        *,
        parents: int | None = None,
        elites: int | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(x0, population, **common)
        population = self.population_size
        self.parents = max(2, population // 20) if parents is None else whole_number(parents, "parents", 1)
        self.elites = min(10, self.parents) if elites is None else whole_number(elites, "elites", 1)
        for name in ("parents", "elites"):
            if getattr(self, name) >= population:
                raise InputError(f"{name} {getattr(self, name)} must be below the population, {population}")
        self.sigma_schedule = parse_sigma(sigma)
        self.start = self.center.numpy().copy()
        self._identity = secrets.token_hex(16)
        self._breeding: list[Genome] = []  # parents from the last generation, the best first
        self._living: list[Genome] = []  # elites
        self.sums, self.counts = np.zeros(0), np.zeros(0)  # of the elites' fitness

    def members(self) -> GenomePopulation:
        numbers = np.arange(len(self._living), self.population_size)
        if self._breeding:
            drawn = hash64(self.seed, int(Stream.STRATEGY), self.generation, numbers) % len(self._breeding)
            bred = [self._breeding[int(place)] for place in drawn]
        else:
            bred = [()] * len(numbers)  # the initial center
        children = [
            (*genome, Mutation(self.generation, int(number), self.sigma))
            for genome, number in zip(bred, numbers, strict=True)
        ]
        genomes = (*self._living, *children)
        return GenomePopulation.of(genomes, self.start, self.perturbation, self.seed, self._identity)

    def update(self, fitness: Fitness) -> None:
        population = self.sample()
        assert isinstance(population, GenomePopulation)
        old = len(self._living)
        sums, counts = fitness.copy(), np.ones(len(fitness))
        sums[:old] += self.sums
        counts[:old] += self.counts
        means = sums / counts
        order = np.argsort(-means, kind="stable")
        living, proven = order[: self.elites], np.flatnonzero(counts > 1)
        self._breeding = [population.genome(place) for place in order[: self.parents]]
        self._living = [population.genome(place) for place in living]
        self.sums, self.counts = sums[living], counts[living]
        best = proven[means[proven].argmax()] if len(proven) else order[0]
        population.write(int(best), self.center.numpy())

    def remember(self, fitness: Fitness) -> None:
        self.sums, self.counts = self.sums + fitness[: len(self._living)], self.counts + 1

    def state_dict(self) -> State:
        return super().state_dict() | _packed("breeding", self._breeding) | _packed("living", self._living)

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._identity = secrets.token_hex(16)  # key of cached parents, which this state does not share
        self._breeding, self._living = _unpacked("breeding", state), _unpacked("living", state)


def _packed(name: str, genomes: list[Genome]) -> State:
    """Return all mutations, shape (n, 3), and the number of mutations of each genome."""
    rows = np.array([mutation for genome in genomes for mutation in genome], dtype=np.float64)
    lengths = np.array([len(genome) for genome in genomes], dtype=np.int64)
    return {name: torch.from_numpy(rows.reshape(-1, 3)), f"{name}_lengths": torch.from_numpy(lengths)}


def _unpacked(name: str, state: State) -> list[Genome]:
    rows, lengths = torch.as_tensor(state[name]).tolist(), torch.as_tensor(state[f"{name}_lengths"]).tolist()
    mutations = iter(Mutation(int(generation), int(number), scale) for generation, number, scale in rows)
    return [tuple(next(mutations) for _ in range(length)) for length in lengths]
