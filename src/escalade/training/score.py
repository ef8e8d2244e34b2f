"""Scores: functions from the records of episodes to the fitness of members."""

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
    """Mean score of a member's episodes: sums of transformed rewards, or returns without a transform.

    Other scores inherit from this class, or wrap a score. They may learn from the center's episodes. Their
    state is saved with the run. Fitness is a function of the arguments and of that state alone.
    """

    def fitness(self, population: Population, episodes: Episodes) -> Array:
        """Return the fitness of each member, shape (members,).

        The center is passed as a population of one.

        Args:
            population: The members.
            episodes: The members' episodes, member by member, the same number of each.
        """
        return np.asarray(episodes.scores.reshape(population.size, -1).mean(axis=1))

    def learn(self, center: Episodes) -> None:
        """Learn from the center's episodes. Called after the update, in generations with an evaluation."""

    def tensors(self) -> Tensors:
        """Return the state to save, under names that begin with ``score.``."""
        return {}

    def load(self, tensors: Tensors) -> None:
        """Restore the state that :meth:`tensors` returned."""


class ScoreAround(Score):
    """Base of scores that wrap another score and delegate its state."""

    def __init__(self, inner: Score) -> None:
        self.inner = inner

    def learn(self, center: Episodes) -> None:
        self.inner.learn(center)

    def tensors(self) -> Tensors:
        return self.inner.tensors()

    def load(self, tensors: Tensors) -> None:
        self.inner.load(tensors)


class WeightPenalty(ScoreAround):
    """Subtracts ``penalty`` times the mean of a member's squared parameters from its fitness."""

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
"""Wrapping scores by the option that enables them. Each receives the option's value."""


def make_score(config: Config) -> Score:
    """Return the score that the options configure, each of :data:`SCORES` around those before it."""
    score = Score()
    for option, around in SCORES.items():
        if value := getattr(config, option):
            score = around(score, value)
    return score
