"""The mirrored pairs of CR-FM-NES: members of a pair differ only in their policies."""

import numpy as np
import pytest

from escalade.perturbation import NoiseTable
from escalade.rollout.episodes import EpisodeJob
from escalade.strategies import CRFMNES

TABLE = NoiseTable(3, 2**12)


def test_members_are_declared_mirrored_pairs():
    es = CRFMNES(np.linspace(-1, 1, 5), 8, perturbation=TABLE)
    for _ in range(3):
        assert es.sample().antithetic
        members = es.ask().numpy()
        np.testing.assert_allclose((members[0::2] + members[1::2]) / 2, [es.center.numpy()] * 4, rtol=1e-12)
        es.tell(-((members - 1) ** 2).sum(axis=1))


@pytest.mark.parametrize(("sharing", "distinct"), [("pair", 4), ("generation", 1), ("member", 8)])
def test_members_of_a_pair_play_the_same_episodes(sharing, distinct):
    es = CRFMNES(np.zeros(5), 8, perturbation=TABLE)
    job = EpisodeJob(seed=1, generation=0, population=es.sample(), episodes=2, seed_sharing=sharing)
    given = job.episode_seeds(np.arange(job.items)).reshape(8, 2)
    assert len(np.unique(given)) == 2 * distinct
    if sharing == "pair":
        np.testing.assert_array_equal(given[0::2], given[1::2])
