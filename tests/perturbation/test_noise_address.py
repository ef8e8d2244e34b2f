"""Addresses give the same numbers on every host and in every version, so that old runs can be resumed."""

import numpy as np

from escalade.perturbation import Stream, hash64, normals, seeds
from escalade.perturbation.slices import offsets


def test_hash64_starts_with_the_published_splitmix64():
    assert int(hash64(0)) == 0xE220A8397B1DCDAF


def test_hash64_is_pinned():
    assert int(hash64(1, 2, 3)) == 15020427595393229491
    assert hash64(123, 1, [0, 1, 2]).tolist() == [
        6302760795220041440,
        9626719028879431424,
        1177796814569802283,
    ]


def test_hash_words_broadcast_and_their_order_matters():
    assert hash64([[1], [2]], [3, 4, 5]).shape == (2, 3)
    assert int(hash64([[1], [2]], [3, 4, 5])[1, 2]) == int(hash64(2, 5))
    assert int(hash64(1, 2)) != int(hash64(2, 1))


def test_seeds_fit_gymnasium_and_are_pinned():
    assert seeds(7, Stream.EPISODE, 3, [0, 1, 2]).tolist() == [1896776993, 483794679, 1138248422]
    assert seeds(7, Stream.EPISODE, 3, [8, 40]).tolist() == [
        45481035,
        110496463,
    ]  # moved out of the range reserved for evaluation
    many = seeds(0, Stream.EVALUATION, np.arange(10_000))
    assert many.min() >= 0
    assert many.max() < 2**31
    assert len(np.unique(many)) > 9_990


def test_evaluation_seeds_are_never_training_seeds():
    number = np.arange(200_000)
    trained = [seeds(3, stream, number) for stream in (Stream.EPISODE, Stream.REFERENCE)]
    judging = [Stream.EVALUATION, Stream.CONFIRMATION, Stream.FRESH_EVALUATION]
    judged = sorted((seeds(3, stream, number) for stream in judging), key=lambda drawn: drawn.min())
    last = max(drawn.max() for drawn in trained)
    for drawn in judged:  # The ranges of the streams are disjoint, so no seed can be shared.
        assert last < drawn.min()
        last = drawn.max()
    assert last < 2**31


def test_normals_are_standard_normal():
    values = normals(11, np.arange(200_000))
    assert abs(values.mean()) < 0.01
    assert abs(values.std() - 1) < 0.01
    assert abs((values**4).mean() - 3) < 0.1
    np.testing.assert_allclose(
        normals(5, [0, 1, 2]), [-0.3427540217149585, 0.04176856213369812, -1.6733369367199118], rtol=1e-12
    )


def test_offsets_are_pinned_in_range_and_spread():
    assert offsets(1, 2, 4, 4096, 10).tolist() == [1219, 140, 2, 1988]
    starts = offsets(0, 0, 5000, 1000, 991)  # only ten possible offsets
    assert sorted(set(starts.tolist())) == list(range(10))
    assert np.bincount(starts).min() > 400
