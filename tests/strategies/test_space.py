"""Searches in a box: no standard deviation grows past its width, for any strategy."""

import math

import numpy as np
import pytest
from tests.recording import Recording

import escalade
from escalade.errors import InputError
from escalade.perturbation import NoiseTable
from escalade.strategies.registry import STRATEGIES
from escalade.wings.optimize.space import SearchSpace, Start

TABLE = NoiseTable(5, 2**14)
SHAPED = ["snes", "cem", "sep-cma-es", "cma-es", "ma-es", "cr-fm-nes", "vd-cma", "xnes", "pgpe", "les"]


def noise(x):
    return math.sin(1e8 * float(x @ [1.0, math.e, math.pi]))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_search_without_information_stays_as_wide_as_its_box(strategy):
    recording = Recording()
    found = escalade.optimize(
        noise, np.full(3, 0.5), strategy, bounds=(0, 1), population=12, budget=4000, recorders=[recording]
    )
    assert max(row.sigma for row in recording.rows) <= 1 + 1e-12
    assert found.stop_reason != "tolxup"


@pytest.mark.parametrize("seed", [22, 29, 30, 32])
def test_population_growth_curve_is_fitted_from_any_seed(seed):
    """If sigma grows wider than the box, these seeds end 100 to 1,000 above the optimum."""
    times = np.linspace(0, 1000, 100)

    def grown(rate, capacity):
        return capacity / (1 + (capacity / 2 - 1) * np.exp(-rate * times))

    measured = grown(0.015, 500) + np.random.default_rng(1).normal(0, 10, 100)
    found = escalade.optimize(
        lambda x: ((grown(*x) - measured) ** 2).sum(), [0.01, 450], "xnes", sigma=[0.01, 100],
        bounds=(np.array([0, 400]), np.array([0.03, 600])), seed=seed,
    )  # fmt: skip
    assert found.best_fitness == pytest.approx(7225.8615, abs=1e-3)


def test_tiny_initial_sigma_may_grow_until_it_fills_the_box():
    found = escalade.optimize(lambda x: ((x - 0.1) ** 2).sum(), np.full(3, 0.9), sigma=1e-6, bounds=(0, 1))
    np.testing.assert_allclose(found.best, 0.1, atol=1e-5)


def test_initial_sigma_is_at_most_the_width_of_the_box():
    space = SearchSpace(np.zeros(2), 10.0, ([-1, -math.inf], [2, 5]), seed=1)
    es = space.make(STRATEGIES["cma-es"].load(), Start(None), 0)
    np.testing.assert_allclose(es.scale * space._scale, [3, 10])


@pytest.mark.parametrize("strategy", SHAPED)
def test_each_deviation_is_reduced_by_its_own_factor(strategy):
    es = STRATEGIES[strategy].load()(np.zeros(3), population=12, sigma=0.5, perturbation=TABLE)
    for _ in range(3):
        es.tell(-((es.ask().double().numpy() - [1, 2, 3]) ** 2).sum(axis=1))
    before, factors = np.broadcast_to(es.scale, (3,)).copy(), np.array([1e-3, 1.0, 1e-2])
    es.narrow(factors)
    np.testing.assert_allclose(es.scale, factors * before, rtol=1e-6)
    es.tell(-((es.ask().double().numpy() - [1, 2, 3]) ** 2).sum(axis=1))
    np.testing.assert_allclose(np.log(es.scale / before), np.log(factors), atol=3)


@pytest.mark.parametrize("strategy", ["lm-ma-es", "rm-es", "canonical-es"])
def test_single_step_size_is_reduced_by_the_smallest_factor(strategy):
    es = STRATEGIES[strategy].load()(np.zeros(3), population=12, sigma=0.5, perturbation=TABLE)
    before = np.broadcast_to(es.scale, (3,)).copy()
    es.narrow(np.array([0.25, 1.0, 0.5]))
    np.testing.assert_allclose(np.broadcast_to(es.scale, (3,)), before / 4)


@pytest.mark.parametrize("bounds", [(-1e308, 1e308), (None, 1e300), (0, [1, 1e308]), (-1e101, None)])
def test_bounds_too_large_to_compute_with_are_rejected_by_name(bounds):
    with pytest.raises(InputError, match=r"bounds: parameter . has .*use None for no bound"):
        escalade.optimize(lambda x: (x**2).sum(), np.full(2, 0.5), bounds=bounds)
