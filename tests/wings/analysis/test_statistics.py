"""The statistics of Agarwal et al. 2021, compared with manual values and with their rliable 1.2.0."""

import numpy as np
import pytest

from escalade.wings.analysis.statistics import (
    interquartile_score,
    interval,
    performance_profile,
    probability_of_improvement,
)

FIRST = [np.array([0.0, 0.5, 1.0, 0.3]), np.array([0.2, 0.9])]  # two tasks, with four runs and two
SECOND = [np.array([0.5, 0.5]), np.array([0.1, 0.2, 1.5])]


def test_a_performance_profile_weights_tasks_equally():
    found = performance_profile(FIRST, np.array([0.0, 0.3, 0.9]))
    # above 0: 3 of 4 and 2 of 2; above 0.3: 2 of 4 and 1 of 2; above 0.9: 1 of 4 and 0 of 2
    np.testing.assert_allclose(found, [(3 / 4 + 1) / 2, (2 / 4 + 1 / 2) / 2, (1 / 4 + 0) / 2])


def test_probability_of_improvement_counts_ties_as_half():
    # task 1: 1.0 beats both, 0.5 ties with both: 3 of 8; task 2: 0.2 beats one and ties with one, 0.9 beats
    # two: 3.5 of 6
    expected = (3 / 8 + 3.5 / 6) / 2
    assert probability_of_improvement(FIRST, SECOND) == pytest.approx(expected)
    assert probability_of_improvement(SECOND, FIRST) == pytest.approx(1 - expected)


def test_statistics_match_rliable():
    """Values of rliable 1.2.0 with pandas 2.3.3 on the same arrays; its interval uses different draws."""
    chance = np.random.default_rng(0)
    a, b = chance.normal(0.5, 0.3, (7, 4)), chance.normal(0.6, 0.3, (5, 4))
    b[0] = a[0]
    first, second = list(a.T), list(b.T)
    assert interquartile_score(first) == pytest.approx(0.45532024789523495, rel=1e-12)
    assert probability_of_improvement(first, second) == pytest.approx(0.22857142857142856, rel=1e-12)
    profile = performance_profile(first, np.linspace(0, 1, 6))
    np.testing.assert_allclose(profile, [0.96428571, 0.89285714, 0.60714286, 0.32142857, 0.10714286, 0])
    np.testing.assert_allclose(interval(interquartile_score, first), [0.36771078, 0.56330989], atol=0.01)


def test_the_bootstrap_is_stratified_and_deterministic():
    """Runs are resampled within their task: if the runs of each task are equal, nothing varies."""
    tasks = [np.zeros(5), np.ones(5)]
    assert interval(interquartile_score, tasks) == (0.5, 0.5)
    low, high = interval(interquartile_score, FIRST)
    assert low < interquartile_score(FIRST) < high
    assert interval(interquartile_score, FIRST) == (low, high)
