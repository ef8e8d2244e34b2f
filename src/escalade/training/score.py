"""The seam between episodes and fitness: a score turns records into what members are ranked by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.config.options import Config
from escalade.perturbation import Population
from escalade.rollout.episodes import Episodes
from escalade.storage.tensors import Tensors

Array = NDArray[np.float64]


class Score:
    """Mean score of a member's episodes: sums of transformed rewards, or the returns where none are.

    Other scores are built on it, or around another one: they may learn from the centre's episodes, and what
    they learn is saved with the run. A score is a function of its arguments and of that state alone.
    """

    def fitness(self, population: Population, episodes: Episodes) -> Array:
        """Fitness of each member, shape (members,); the centre comes as a population of one.

        Args:
            population: the members.
            episodes: theirs, member by member, as many of each.
        """
        return np.asarray(episodes.scores.reshape(population.size, -1).mean(axis=1))

    def learn(self, center: Episodes) -> None:
        """Take in the centre's episodes after an update; called in generations that evaluate it."""

    def tensors(self) -> Tensors:
        """State to save, by names that begin with ``score.``."""
        return {}

    def load(self, tensors: Tensors) -> None:
        """Take over what :meth:`tensors` gave."""


class ScoreAround(Score):
    """A score that changes what another one gives; what both learn is saved."""

    def __init__(self, inner: Score) -> None:
        self.inner = inner

    def learn(self, center: Episodes) -> None:
        self.inner.learn(center)

    def tensors(self) -> Tensors:
        return self.inner.tensors()

    def load(self, tensors: Tensors) -> None:
        self.inner.load(tensors)


class WeightPenalty(ScoreAround):
    """Takes ``penalty`` times the mean of a member's squared parameters off its fitness."""

    def __init__(self, inner: Score, penalty: float) -> None:
        super().__init__(inner)
        self.penalty = penalty

    def fitness(self, population: Population, episodes: Episodes) -> Array:
        weights = np.empty(population.dimension, np.float32)
        squares = np.empty(population.size)
        for member in range(population.size):
            population.write(member, weights)
            squares[member] = np.square(weights, dtype=np.float64).mean()
        return self.inner.fitness(population, episodes) - self.penalty * squares


SCORES: dict[str, Callable[[Score, Any], Score]] = {"weight_penalty": WeightPenalty}
"""Scores around another score, by the option that asks for them; each is given the option's value."""


def make_score(config: Config) -> Score:
    """The score that the options ask for, each of :data:`SCORES` around those before it."""
    score = Score()
    for option, around in SCORES.items():
        if value := getattr(config, option):
            score = around(score, value)
    return score
