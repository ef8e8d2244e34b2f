"""Running moments: those of all the data, in member order, and frozen during a generation."""

import numpy as np

from escalade.policies.normalizer import CLIP, Normalization, Normalizer


def merged(episodes, shift):
    normalizer = Normalizer(episodes[0].shape[1])
    for episode in episodes:
        centered = episode - shift
        normalizer.merge(len(episode), shift, centered.sum(0), (centered**2).sum(0))
    return normalizer


def data():
    chance = np.random.default_rng(1)
    lengths = chance.integers(1, 50, 30)
    return [chance.normal([1e3, -2.0, 0.0], [5.0, 0.1, 1.0], (length, 3)) for length in lengths]


def test_moments_are_those_of_all_the_data():
    episodes = data()
    everything = np.concatenate(episodes)
    for shift in (np.zeros(3), everything.mean(0) + 0.1):
        normalizer = merged(episodes, shift)
        assert normalizer.count == len(everything)
        np.testing.assert_allclose(normalizer.mean, everything.mean(0), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            np.sqrt(normalizer.squares / normalizer.count), everything.std(0), rtol=1e-5
        )


def test_the_order_of_merging_is_what_the_bits_depend_on():
    episodes = data()
    first, again, reverse = (merged(e, np.zeros(3)) for e in (episodes, episodes, episodes[::-1]))
    np.testing.assert_array_equal(first.squares, again.squares)
    assert not np.array_equal(first.squares, reverse.squares)
    np.testing.assert_allclose(first.squares, reverse.squares, rtol=1e-6)


def test_diverged_and_empty_episodes_are_left_out():
    episodes = data()
    clean, poisoned = merged(episodes, np.zeros(3)), merged(episodes[:10], np.zeros(3))
    for bad in (np.nan, np.inf):
        poisoned.merge(5, np.zeros(3), np.array([1.0, bad, 0.0]), np.ones(3))
        poisoned.merge(5, np.zeros(3), np.zeros(3), np.array([bad, 1.0, 0.0]))
    poisoned.merge(0, np.zeros(3), np.zeros(3), np.zeros(3))
    for episode in episodes[10:]:
        poisoned.merge(len(episode), np.zeros(3), episode.sum(0), (episode**2).sum(0))
    np.testing.assert_array_equal(clean.mean, poisoned.mean)
    np.testing.assert_array_equal(clean.squares, poisoned.squares)
    assert clean.count == poisoned.count


def test_before_any_observation_it_changes_nothing():
    frozen = Normalizer(3).freeze()
    seen = np.array([[1.5, -2.0, 0.0]])
    np.testing.assert_array_equal(frozen.apply(seen), seen.astype(np.float32))


def test_what_is_frozen_does_not_move():
    normalizer = merged(data(), np.zeros(3))
    frozen = normalizer.freeze()
    mean, scale = frozen.mean.copy(), frozen.scale.copy()
    normalizer.merge(5, np.zeros(3), np.full(3, 1e6), np.full(3, 1e12))
    np.testing.assert_array_equal(frozen.mean, mean)
    np.testing.assert_array_equal(frozen.scale, scale)


def test_observations_become_standard_and_are_clipped():
    episodes = data()
    everything = np.concatenate(episodes)
    applied = merged(episodes, np.zeros(3)).freeze().apply(everything)
    np.testing.assert_allclose(applied.mean(0), 0, atol=0.01)
    np.testing.assert_allclose(applied.std(0), 1, atol=0.01)
    extreme = Normalization(np.zeros(2), np.ones(2)).apply(np.array([1e9, -1e9]))
    assert extreme.tolist() == [CLIP, -CLIP]


def test_a_dimension_that_never_moved_keeps_its_scale():
    normalizer = Normalizer(2)
    normalizer.merge(10, np.zeros(2), np.array([70.0, 0.0]), np.array([490.0, 10.0]))
    assert normalizer.freeze().scale.tolist() == [1.0, 1.0]
    assert normalizer.freeze().mean.tolist() == [7.0, 0.0]
