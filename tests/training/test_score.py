"""Fitness computed from episode records."""

import numpy as np

from escalade.config.options import Config
from escalade.engines.results import Results
from escalade.perturbation import DensePopulation
from escalade.rollout.episodes import Episodes, RecordType
from escalade.training.score import Score, make_score


def episodes(scores):
    records = np.zeros(len(scores), RecordType().plain)
    records["score"], records["return"], records["length"] = scores, 7.0, 1
    results = Results(len(scores))
    results.put_many(np.arange(len(scores)), records)
    return Episodes.of(results)


MEMBERS = DensePopulation(np.array([[1.0, 2.0], [3.0, -1.0]], np.float32))


def test_fitness_is_the_mean_score_of_a_members_episodes():
    assert Score().fitness(MEMBERS, episodes([1.0, 2.0, 5.0, 8.0])).tolist() == [1.5, 6.5]


def test_weight_penalty_subtracts_the_mean_square_for_members_and_center():
    score = make_score(Config(env="X-v0", weight_penalty=0.1))
    found = score.fitness(MEMBERS, episodes([1.0, 2.0, 5.0, 8.0]))
    np.testing.assert_allclose(found, [1.5 - 0.1 * 2.5, 6.5 - 0.1 * 5.0])
    (center,) = score.fitness(DensePopulation(np.full((1, 2), 2.0, np.float32)), episodes([3.0, 5.0, 7.0]))
    np.testing.assert_allclose(center, 5.0 - 0.1 * 4.0)


def test_score_is_unchanged_by_default():
    assert type(make_score(Config(env="X-v0"))) is Score
