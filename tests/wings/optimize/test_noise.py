"""optimize(noisy=True): measurement and treatment of noise, and the result with its interval."""

import math

import numpy as np
import pytest

import escalade
from escalade.wings.optimize.noise import Repetitions, noisy_population, rank_changes


def sphere(x):
    return ((x - 3) ** 2).sum(-1)


class Noisy:
    """A sphere plus normal noise from NumPy's global generator; stores the points of each call."""

    def __init__(self, deviation=1.0):
        self.calls, self.deviation = [], deviation

    def __call__(self, points):
        self.calls.append(points.copy())
        return sphere(points) + self.deviation * np.random.standard_normal(len(points))


def test_rank_changes_are_accepted_up_to_a_threshold():
    values = np.arange(20.0)
    assert rank_changes(values, values[:3]) < 0
    assert rank_changes(values, values[:3] + 1) < 0
    assert rank_changes(values, values[:3] + 15) > 0
    assert rank_changes(np.zeros(20), np.zeros(3)) < 0  # ties are not noise
    missing = np.where(values < 2, math.nan, values)
    assert rank_changes(missing, missing[:2]) < 0
    drawn = np.random.default_rng(0).standard_normal((200, 2, 20))
    assert np.mean([rank_changes(first, again) for first, again in drawn]) > 0


def test_evaluations_per_member_rise_and_fall_with_rank_changes():
    rng, repetitions = np.random.default_rng(1), Repetitions(4)
    members = np.arange(40.0).reshape(20, 2)
    counts = []
    for generation in range(60):
        rows = repetitions.rows(members, math.inf)
        counts.append(repetitions.count)
        assert len(rows) == 22 * repetitions.count
        noise = 1e3 * rng.standard_normal(len(rows)) if generation < 30 else 0.0
        values = repetitions.fold(rows.sum(axis=1) + noise)
    np.testing.assert_allclose(values, members.sum(axis=1))
    assert counts[0] == counts[-1] == 1
    assert max(counts) > 5
    repetitions.rows(members, 70.0)
    assert repetitions.count == 1


def test_fitness_is_the_mean_of_the_finite_values():
    repetitions = Repetitions(1)
    repetitions._wanted = 2.0
    assert repetitions.rows(np.arange(3.0)[:, None], math.inf)[:, 0].tolist() == [
        0,
        0,
        1,
        1,
        2,
        2,
        0,
        0,
        1,
        1,
    ]
    values = repetitions.fold(np.array([1, 2, 5, math.nan, math.inf, math.nan, 3, 6, 5, 8]))
    np.testing.assert_array_equal(values, [3, 6, math.nan])


def test_the_result_is_the_center_with_fresh_evaluations():
    function = Noisy()
    found = escalade.optimize(
        function, np.zeros(3), noisy=True, budget=2_000, vectorized=True, bounds=(-5, [2.9, 5, 5])
    )
    assert len(function.calls[-1]) == 30
    assert (function.calls[-1] == found.best).all()
    np.testing.assert_array_equal(found.best, found.center)
    assert found.evaluations == sum(map(len, function.calls)) <= 2_000 + noisy_population(3) + 2
    assert found.stop_reason == "budget"
    low, high = found.interval
    assert low < found.best_fitness < high
    assert low < sphere(found.best) < high
    assert 0.3 < high - low < 1.5  # 2 * 2.045 / sqrt(30) deviations
    assert "interval" in found._repr_html_()
    plain = escalade.optimize(Noisy(), np.zeros(3), budget=2_000, vectorized=True, bounds=(-5, [2.9, 5, 5]))
    assert plain.interval is None
    assert sphere(found.best) < sphere(plain.best)
    assert plain.best_fitness < -1


def test_any_number_of_workers_gives_identical_results():
    def function(x):
        if np.random.uniform() < 0.1:
            raise OSError
        return sphere(x) + 30 * np.random.normal()

    options = {"noisy": True, "budget": 400, "catch": OSError, "population": 8}
    first, second = (
        escalade.optimize(function, np.zeros(2), workers=workers, **options) for workers in (0, 2)
    )
    np.testing.assert_array_equal(first.best, second.best)
    np.testing.assert_array_equal(first.history, second.history)
    assert (first.best_fitness, first.interval) == (second.best_fitness, second.interval)
    assert first.failures == second.failures > 10


def test_without_noise_each_member_is_evaluated_once():
    function = Noisy(0.0)
    found = escalade.optimize(function, np.zeros(3), noisy=True, vectorized=True, direction="minimize")
    assert {len(points) for points in function.calls[:-1]} == {noisy_population(3) + 2}
    assert found.stop_reason == "tolfun"
    assert found.interval == pytest.approx((found.best_fitness, found.best_fitness), rel=1e-9)
    assert found.best_fitness < 1e-8
    negative = escalade.optimize(
        lambda x: -sphere(x), np.zeros(3), noisy=True, vectorized=True, direction="maximize"
    )
    np.testing.assert_array_equal(negative.best, found.best)


def test_a_target_must_be_reached_by_the_center():
    lucky = escalade.optimize(
        Noisy(), np.zeros(3), noisy=True, vectorized=True, target=-1.0, budget=1_500, seed=2
    )
    assert lucky.stop_reason == "budget"
    assert lucky.history[:, 0].min() < -1
    reached = escalade.optimize(
        Noisy(), np.zeros(3), noisy=True, vectorized=True, target=1.0, budget=9_000, seed=2
    )
    assert reached.stop_reason == "target"
    assert reached.best_fitness <= 1.0


def test_the_search_continues_if_the_center_misses_the_target():
    function = Noisy(0.0)

    def worse_alone(points):
        found = function(points)
        return found + 1 if len(points) == 30 and (points == points[0]).all() else found

    found = escalade.optimize(worse_alone, np.zeros(3), noisy=True, vectorized=True, target=0.5, budget=3_000)
    assert found.best_fitness > 1
    assert found.stop_reason == "budget"


def test_with_restarts_the_best_center_wins():
    judged = []

    def function(points):
        values = sphere(points) + 0.01 * np.random.standard_normal(len(points))
        if len(points) == 30 and (points == points[0]).all():
            judged.append((values.mean(), points[0].copy()))
        return values

    found = escalade.optimize(
        function, np.zeros(2), noisy=True, vectorized=True, restarts="ipop", tolerance=0.5, budget=5_000
    )
    value, point = min(judged, key=lambda pair: pair[0])
    assert found.restarts > 0
    assert len(judged) > 1
    assert found.best_fitness == pytest.approx(value)
    np.testing.assert_array_equal(found.best, point)


def test_a_callback_sees_the_mean_of_the_generation():
    seen = []

    def watch(found):
        seen.append(found)
        return len(seen) == 3

    found = escalade.optimize(Noisy(), np.zeros(3), noisy=True, vectorized=True, callback=watch)
    for one in seen:
        assert one.interval is None
        assert one.best_fitness == one.history[-1, 1]
        np.testing.assert_array_equal(one.best, one.center)
    assert found.stop_reason == "callback"
    assert found.interval is not None


def test_the_noise_is_reported(capsys):
    escalade.optimize(
        Noisy(1e3), np.zeros(3), noisy=True, vectorized=True, budget=2_000, bounds=(-5, 5), verbose=True
    )
    assert "the function is noisy; each member is now evaluated 2 times" in capsys.readouterr().out
