"""optimize(asynchronous=True): results in any order, slow points, and refusals."""

import time

import numpy as np
import pytest

import escalade
from escalade.errors import EnvironmentFailure, InputError
from escalade.training.limits import Limits
from escalade.wings.optimize.asynchronous import AsynchronousSearch, asynchronous_population
from escalade.wings.optimize.calls import Values
from escalade.wings.optimize.plan import SearchOptions, plan_search
from escalade.wings.optimize.space import SearchSpace


def sphere(x):
    return float(((x - 3) ** 2).sum())


def searching(restarts=None, **options):
    space = SearchSpace(np.zeros(3), None, (-9, 9), 1)
    asked = {"population": None, "budget": None, "target": None, "tolerance": 1e-11} | options
    given = SearchOptions("cma-es", "minimize", **asked, restarts=restarts)
    return AsynchronousSearch(space, plan_search(given, np.zeros(3), space), given, Limits())


def tell(search, asked, value=None):
    value = sphere(asked.point[0]) if value is None else value
    search.tell_one(asked, Values(np.array([value]), np.array([False]), ""))


def run(order, **options):
    """Search with four pending points, of which the one at index ``order(count)`` ends first."""
    search, waiting, count = searching(**options), [], 0
    while search.reason is None and count < 3000:
        waiting.append(search.ask_one())
        if len(waiting) == 4:
            tell(search, waiting.pop(order(count)))
            count += 1
    return search.found()


def test_the_search_is_determined_by_the_order_of_the_results():
    first, again, other = run(lambda count: count % 3), run(lambda count: count % 3), run(lambda count: 2)
    np.testing.assert_array_equal(first.history, again.history)
    assert not np.array_equal(first.history, other.history)
    for found in (first, other):
        np.testing.assert_allclose(found.best, 3, atol=1e-3)
        assert found.stop_reason == "tolfun"
        assert found.evaluations == 7 * len(found.history)


def test_a_point_that_never_finishes_does_not_block_the_search():
    search = searching(target=1e-6)
    search.ask_one()
    while search.reason is None:
        tell(search, search.ask_one())
    assert search.reason == "target"


def test_a_late_result_of_an_ended_search_counts_only_as_an_evaluation():
    search = searching(restarts="ipop", tolerance=1e-3)
    late = search.ask_one()
    while search.found().restarts == 0:
        tell(search, search.ask_one())
    before = search.found()
    tell(search, late, -1.0)
    assert search.found().evaluations == before.evaluations + 1
    assert search.found().best_fitness == before.best_fitness


def test_workers_search_together_and_tolerate_some_failures():
    def flaky(x):
        if np.random.uniform() < 0.2:
            raise OSError("no luck")
        return sphere(x)

    found = escalade.optimize(
        flaky, np.zeros(3), workers=2, asynchronous=True, catch=OSError, target=1e-3, seed=4
    )
    assert found.stop_reason == "target"
    assert found.best_fitness <= 1e-3
    assert found.failures > 0


@pytest.mark.parametrize("catch", [False, True])
def test_a_programming_error_in_the_function_ends_the_search(catch):
    def function(x):
        raise NameError("wieght")

    with pytest.raises(EnvironmentFailure, match="the function raised NameError: wieght"):
        escalade.optimize(function, np.zeros(2), workers=1, asynchronous=True, catch=catch, budget=100)


def test_a_message_names_the_evaluation():
    def late(x):
        if x[0] > 1:
            raise ValueError("too far")
        return sphere(x)

    with pytest.raises(EnvironmentFailure, match=r"^evaluation \d+: the function raised ValueError: too far"):
        escalade.optimize(late, np.zeros(2), workers=1, asynchronous=True)


def test_a_time_limit_in_the_first_generation_is_named():
    def slow(x):
        time.sleep(0.3)
        return sphere(x)

    with pytest.raises(InputError, match=r"the time limit of 0\.1 s was reached in the first generation"):
        escalade.optimize(slow, np.zeros(2), workers=1, population=20, seconds=0.1, asynchronous=True)


def test_a_generation_has_three_results_for_two_workers_or_the_usual_number():
    assert [asynchronous_population(10, workers) for workers in (2, 8, 40)] == [10, 12, 60]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "asynchronous=True has no effect with workers=0"),
        ({"workers": 2, "noisy": True}, "noisy=True and asynchronous=True exclude each other"),
        ({"vectorized": True}, "vectorized=True and asynchronous=True exclude each other"),
        ({"workers": 1, "strategy": "snes"}, "asynchronous=True needs strategy cma-es or ma-es"),
    ],
)
def test_incompatible_options_are_refused_by_name(options, message):
    with pytest.raises(InputError, match=message):
        escalade.optimize(sphere, np.zeros(2), asynchronous=True, **options)
