"""optimize_batch: independent searches of many functions in shared calls."""

import numpy as np
import pytest
import torch

import escalade
from escalade.errors import EnvironmentFailure, InputError

PLACES = np.array([[1.0, 2.0, 3.0], [-4.0, 0.5, 2.0], [0.0, 0.0, 9.0]])


def sphere(points, numbers):
    return ((points - PLACES[numbers]) ** 2).sum(axis=1)


def test_each_function_of_a_batch_is_minimized_in_shared_calls():
    calls = []

    def function(points, numbers):
        calls.append(np.unique(numbers).tolist())
        assert points.dtype == np.float64
        assert numbers.dtype == np.int64
        return sphere(points, numbers)

    found = escalade.optimize_batch(function, np.zeros((3, 3)), target=1e-10)
    np.testing.assert_allclose([one.best for one in found], PLACES, atol=1e-4)
    assert {one.stop_reason for one in found} == {"target"}
    assert len(calls) == max(len(one.history) for one in found)
    assert calls[0] == [0, 1, 2]
    ended = sorted(len(one.history) for one in found)
    assert [sum(len(numbers) >= 3 - k for numbers in calls) for k in range(3)] == ended


def test_a_search_does_not_depend_on_the_others():
    options = {"bounds": (-10, 10), "budget": 1000, "restarts": "bipop", "tolerance": 1e-3, "seed": 3}
    together = escalade.optimize_batch(sphere, np.zeros((3, 3)), **options)
    others = escalade.optimize_batch(
        lambda x, n: np.where(n == 1, sphere(x, n), np.cos(x).sum(axis=1)), np.zeros((3, 3)), **options
    )
    assert np.array_equal(together[1].history, others[1].history)
    assert np.array_equal(together[1].best, others[1].best)
    assert not np.array_equal(together[0].history, others[0].history)
    assert together[1].restarts > 0


def test_the_first_search_of_a_batch_equals_optimize():
    alone = escalade.optimize(lambda x: ((x - PLACES[0]) ** 2).sum(), np.zeros(3), seed=7)
    batch = escalade.optimize_batch(sphere, np.zeros((3, 3)), seed=7)
    assert np.array_equal(batch[0].history, alone.history)
    assert np.array_equal(batch[0].best, alone.best)
    assert (batch[0].stop_reason, batch[0].evaluations) == (alone.stop_reason, alone.evaluations)
    same = escalade.optimize_batch(lambda x, n: (x**2).sum(axis=1), np.ones((2, 3)), budget=50)
    assert not np.array_equal(same[0].history, same[1].history)  # each has its own noise


def test_the_function_and_result_use_the_tensor_type_of_x0():
    def function(points, numbers):
        assert points.dtype == torch.float64
        value = ((points - torch.from_numpy(PLACES)[numbers]) ** 2).sum(dim=1)
        points.zero_()
        numbers.zero_()
        return value

    found = escalade.optimize_batch(function, torch.zeros(3, 3), "snes", budget=4000)
    np.testing.assert_allclose(torch.stack([one.best for one in found]), PLACES, atol=0.05)


def test_a_caught_exception_counts_for_every_search_of_the_call():
    count = 0

    def function(points, numbers):
        nonlocal count
        count += 1
        if count == 2:
            raise OSError("no answer")
        return sphere(points, numbers)

    found = escalade.optimize_batch(function, np.zeros((3, 3)), population=8, budget=80, catch=OSError)
    assert [one.failures for one in found] == [8, 8, 8]
    count = 0
    with pytest.raises(EnvironmentFailure, match="no answer"):
        escalade.optimize_batch(function, np.zeros((3, 3)), budget=80)


@pytest.mark.parametrize(
    ("function", "x0", "options", "words"),
    [
        (None, [[1.0]], {}, r"callable as function\(points, numbers\)"),
        (sphere, [1.0], {}, r"x0 of shape \(1,\) must have one row per function"),
        (sphere, [[1.0, 2.0], [3.0]], {}, "x0 must have one row per function, all of the same length"),
        (sphere, [[1.0, np.nan], [3.0, 4.0]], {}, r"x0 must be finite, but x0\[1\] is nan"),
        (lambda x, n: 1.0, np.zeros((2, 3)), {}, "must return one number per point"),
        (lambda x, n: np.full(len(n), np.nan), np.zeros((2, 3)), {}, "returned no finite number"),
    ],
)
def test_impossible_arguments_are_refused_in_one_line(function, x0, options, words):
    with pytest.raises(InputError, match=words) as raised:
        escalade.optimize_batch(function, x0, **options)
    assert "\n" not in str(raised.value)


def test_a_function_without_finite_values_does_not_affect_the_others():
    def function(points, numbers):
        return np.where(numbers == 1, 1e31, sphere(points, numbers))

    found = escalade.optimize_batch(function, np.zeros((3, 3)))
    alone = escalade.optimize_batch(sphere, np.zeros((3, 3)))
    for number in (0, 2):
        np.testing.assert_array_equal(found[number].best, alone[number].best)
    assert np.isnan(found[1].best_fitness)
    np.testing.assert_array_equal(found[1].best, found[1].center)
