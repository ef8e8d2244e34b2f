"""Fitness shaping: ties, all-equal generations, sums, and members with non-finite fitness."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escalade.strategies.shaping import (
    SHAPINGS,
    centered_ranks,
    finite_fitness,
    nes_utilities,
    ranks,
    raw,
    sign,
    usable,
    usable_number,
    within_pairs,
    z_score,
)

repeatable = settings(deadline=None, derandomize=True)
fitnesses = (
    st.lists(st.integers(-6, 6), min_size=2, max_size=20)
    .filter(lambda values: len({*values}) > 1)
    .map(lambda values: np.array(values, dtype=np.float64))
)


def test_tied_members_share_the_mean_rank():
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0, 3.0])).tolist() == [3.0, 0.0, 3.0, 1.0, 3.0]


def test_centered_ranks_range_from_minus_half_to_half():
    assert centered_ranks(np.array([10.0, -1.0, 0.0, 2.0, 1e9])).tolist() == [0.25, -0.5, -0.25, 0.0, 0.5]


@pytest.mark.parametrize("count", [2, 3, 4, 7, 50])
def test_nes_utilities_match_the_paper(count):
    fitness = np.random.default_rng(count).permutation(count).astype(np.float64)
    best_first = [max(0.0, math.log(count / 2 + 1) - math.log(k)) for k in range(1, count + 1)]
    expected = [best_first[count - 1 - int(f)] / sum(best_first) - 1 / count for f in fitness]
    np.testing.assert_allclose(nes_utilities(fitness), expected, rtol=1e-12, atol=1e-15)


def test_z_score_of_ordinary_and_huge_values():
    np.testing.assert_allclose(z_score(np.array([1.0, 2.0, 3.0])), np.array([-1, 0, 1]) * math.sqrt(1.5))
    np.testing.assert_allclose(z_score(np.array([1e308, -1e308])), [1.0, -1.0])


def test_sign_and_raw_shaping():
    assert sign(np.array([5.0, 1.0, 3.0])).tolist() == [1.0, -1.0, 0.0]
    assert raw(np.array([1.0, 2.0, 6.0])).tolist() == [-2.0, -1.0, 3.0]


@repeatable
@given(fitnesses)
def test_utilities_keep_order_and_ties(fitness):
    for shaping in SHAPINGS.values():
        utilities = shaping(fitness)
        for i in range(len(fitness)):
            equal = fitness == fitness[i]
            assert (utilities[equal] == utilities[i]).all()
            assert (utilities[fitness > fitness[i]] >= utilities[i] - 1e-12).all()


@repeatable
@given(fitnesses)
def test_utilities_sum_to_zero(fitness):
    for name in ("centered-ranks", "z-score", "nes", "raw"):
        assert abs(SHAPINGS[name](fitness).sum()) < 1e-9


@repeatable
@given(fitnesses, st.sampled_from([0.25, 1.0, 8.0]), st.integers(-100, 100))
def test_rank_shapings_ignore_scale_and_offset(fitness, scale, offset):
    for name in ("centered-ranks", "nes", "sign"):
        np.testing.assert_array_equal(SHAPINGS[name](fitness), SHAPINGS[name](fitness * scale + offset))


def test_nonfinite_fitness_counts_as_the_worst():
    cleaned, bad = finite_fitness(np.array([1.0, np.nan, -2.0, np.inf, -np.inf]))
    assert cleaned.tolist() == [1.0, -2.0, -2.0, -2.0, -2.0]
    assert bad == [1, 3, 4]


def test_all_nonfinite_fitness_is_an_all_equal_generation():
    cleaned, bad = finite_fitness(np.array([np.nan, np.inf]))
    assert cleaned.tolist() == [0.0, 0.0]
    assert bad == [0, 1]


@pytest.mark.parametrize("value", [0.0, 1e30, -1e30, 1e31, -1e35, math.nan, math.inf, -math.inf])
def test_usable_number_agrees_with_usable_array(value):
    assert usable_number(value) == usable(np.array([value]))[0] == (abs(value) <= 1e30)


def test_within_pairs_a_failed_member_loses_to_its_partner():
    relative = within_pairs(np.array([5.0, 7.0, np.nan, 6.0, np.inf, 5.0, -3.0, -3.0]))
    assert relative.tolist() == [-1.0, 1.0, -4.5, 4.5, -4.0, 4.0, 0.0, 0.0]
    assert within_pairs(np.full(4, np.nan)).tolist() == [0.0] * 4
