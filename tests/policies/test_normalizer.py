"""Running moments: equal to those of all the data, merged in member order, frozen during a generation."""

import numpy as np
import pytest
import torch

from escalade.policies.normalizer import CLIP, Normalization, Normalizer, normalize


def moments(episodes):
    """Return lengths and moments as rollouts report them."""
    squares = [((episode - episode.mean(0)) ** 2).sum(0) for episode in episodes]
    found = np.stack([np.stack([e.mean(0), square]) for e, square in zip(episodes, squares, strict=True)])
    return np.array([len(episode) for episode in episodes]), found


def merged(episodes, at_once=10):
    normalizer = Normalizer(episodes[0].shape[1])
    for start in range(0, len(episodes), at_once):
        normalizer.merge_episodes(*moments(episodes[start : start + at_once]))
    return normalizer


def data():
    chance = np.random.default_rng(1)
    lengths = chance.integers(1, 50, 30)
    return [chance.normal([1e3, -2.0, 0.0], [5.0, 0.1, 1.0], (length, 3)) for length in lengths]


def test_merged_moments_equal_those_of_all_the_data():
    episodes = data()
    everything = np.concatenate(episodes)
    for at_once in (1, 7, 30):
        normalizer = merged(episodes, at_once)
        assert normalizer.count == len(everything)
        np.testing.assert_allclose(normalizer.mean, everything.mean(0), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            np.sqrt(normalizer.squares / normalizer.count), everything.std(0), rtol=1e-12
        )


def test_result_is_bit_identical_for_the_same_merge_order():
    episodes = data()
    first, again, reverse = (merged(e) for e in (episodes, episodes, episodes[::-1]))
    np.testing.assert_array_equal(first.squares, again.squares)
    assert not np.array_equal(first.squares, reverse.squares)
    np.testing.assert_allclose(first.squares, reverse.squares, rtol=1e-12)


@pytest.mark.parametrize(("where", "bad"), [(0, np.nan), (0, np.inf), (0, -1e200), (1, np.nan), (1, np.inf)])
def test_diverged_and_empty_episodes_are_ignored(bad, where):
    lengths, found = moments(data())
    clean = merged(data(), at_once=30)
    broken = np.zeros((2, 2, 3))
    broken[0, where, 1] = bad
    poisoned = Normalizer(3)
    order = np.insert(np.arange(30), [4, 20], [30, 31])  # episode 31 has no observation
    every = np.concatenate([found, broken])[order]
    poisoned.merge_episodes(np.concatenate([lengths, [5, 0]])[order], every)
    np.testing.assert_array_equal(clean.mean, poisoned.mean)
    np.testing.assert_array_equal(clean.squares, poisoned.squares)
    assert clean.count == poisoned.count
    poisoned.merge_episodes(np.array([5]), broken[:1])  # only a diverged episode
    np.testing.assert_array_equal(clean.mean, poisoned.mean)


def test_large_offsets_do_not_lose_the_standard_deviations():
    chance = np.random.default_rng(2)
    episodes = [chance.normal(1.7e9, 1.0, (40, 2)) for _ in range(50)]
    for at_once in (1, 50):
        normalizer = merged(episodes, at_once)
        np.testing.assert_allclose(
            1 / normalizer.snapshot().inverse_std, np.concatenate(episodes).std(0), rtol=1e-6
        )


def test_small_units_are_normalized_like_large_ones():
    episodes = [np.random.default_rng(3).normal(0, [1.0, 0.2], (40, 2)) for _ in range(3)]
    small = merged([1e-6 * one for one in episodes], 1).snapshot().inverse_std
    np.testing.assert_allclose(1e-6 * small, merged(episodes, 1).snapshot().inverse_std, rtol=1e-9)


def test_normalizer_without_observations_is_the_identity():
    frozen = Normalizer(3).snapshot()
    seen = np.array([[1.5, -2.0, 0.0]])
    np.testing.assert_array_equal(frozen.apply(seen), seen.astype(np.float32))


def test_observations_are_standardized_and_clipped():
    episodes = data()
    everything = np.concatenate(episodes)
    applied = merged(episodes).snapshot().apply(everything)
    np.testing.assert_allclose(applied.mean(0), 0, atol=0.01)
    np.testing.assert_allclose(applied.std(0), 1, atol=0.01)
    extreme = Normalization(np.zeros(2), np.ones(2)).apply(np.array([1e9, -1e9]))
    assert extreme.tolist() == [CLIP, -CLIP]
    wider = Normalization(np.zeros(2), np.ones(2), clip=7.5).apply(np.array([1e9, -7.0]))
    assert wider.tolist() == [7.5, -7.0]
    without = Normalization(np.zeros(3), np.ones(3), clip=np.inf).apply(np.array([1e9, 1e300, -1e300]))
    assert without.tolist() == [1e9, np.inf, -np.inf]


def test_numpy_and_torch_use_the_same_formula():
    chance = np.random.default_rng(0)
    seen, mean, inverse_std = chance.normal(size=(9, 4)), chance.normal(size=4), chance.uniform(0.1, 9, 4)
    ours = normalize(seen, mean, inverse_std)
    theirs = normalize(*map(torch.from_numpy, (seen, mean, inverse_std)))
    np.testing.assert_array_equal(ours, theirs.numpy())
    assert np.abs(ours).max() == CLIP


def test_constant_dimension_keeps_its_scale():
    normalizer = Normalizer(2)
    normalizer.merge_episodes(np.array([10]), np.array([[[7.0, 0.0], [0.0, 10.0]]]))
    assert normalizer.snapshot().inverse_std.tolist() == [1.0, 1.0]
    assert normalizer.snapshot().mean.tolist() == [7.0, 0.0]
