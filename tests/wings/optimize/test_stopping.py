"""Stopping rules of a search."""

import numpy as np
import pytest
import torch

from escalade.perturbation import NoiseTable
from escalade.strategies import CMAES, MAES, SNES, DeepGA, SepCMAES
from escalade.wings.optimize.stopping import StopRules

TABLE = NoiseTable(6, 2**14)
VARIED = np.arange(10.0)


def rules(strategy, tolerance=1e-11):
    return StopRules(strategy, tolerance)


def test_a_search_in_progress_does_not_stop():
    for make in (CMAES, SepCMAES, SNES):
        es = make(np.ones(4), 10, sigma=0.3, perturbation=TABLE)
        watch = rules(es)
        assert [watch.check(VARIED - g) for g in range(90)] == [None] * 90


def test_an_ill_conditioned_covariance_stops_the_search():
    es = CMAES(np.ones(2), 10, sigma=0.3, perturbation=TABLE)
    es.covariance = np.diag([1.0, 1e-13])
    assert rules(es).check(VARIED) is None
    es.__dict__.pop("_axes")
    es.covariance = np.diag([1.0, 1e-15])
    assert rules(es).check(VARIED) == "condition"
    separable = SepCMAES(np.ones(2), 10, sigma=0.3, perturbation=TABLE)
    separable.variances = torch.tensor([1.0, 1e-15], dtype=torch.float64)
    assert rules(separable).check(VARIED) == "condition"


def test_a_custom_strategy_stops_by_its_condition_property():
    class Worn(SNES):
        condition = 1e15

    assert rules(SNES(np.ones(2), 10, sigma=0.3, perturbation=TABLE)).check(VARIED) is None
    assert rules(Worn(np.ones(2), 10, sigma=0.3, perturbation=TABLE)).check(VARIED) == "condition"


@pytest.mark.parametrize(
    ("factor", "reason"), [(2e4, "tolxup"), (1e-12, "tolx"), (9e3, None), (1e-10, None), (1e-17, "tolx")]
)
def test_standard_deviations_that_grew_or_shrank_stop_the_search(factor, reason):
    es = SNES(np.full(3, 1e-9), 10, sigma=0.5, perturbation=TABLE)
    watch = rules(es)
    es.deviations = es.deviations * factor
    assert watch.check(VARIED) == reason


def test_steps_below_the_floating_point_resolution_stop_the_search():
    es = SNES(np.array([1.0, 1e9]), 10, sigma=0.5, perturbation=TABLE)
    watch = rules(es, tolerance=1e-300)
    es.deviations = es.deviations * 1e-7
    assert watch.check(VARIED) == "noeffect"


def test_constant_fitness_stops_the_search():
    es = CMAES(np.ones(4), 10, sigma=0.3, perturbation=TABLE)
    recent = 10 + 30 * 4 // 10
    watch = rules(es)
    flat = [watch.check(np.full(10, 7.0)) for _ in range(recent)]
    assert flat == [None] * (recent - 1) + ["tolfun"]
    watch = rules(es)
    best_flat = [watch.check(VARIED) for _ in range(recent)]  # the members differ, but their best is constant
    assert best_flat == [None] * (recent - 1) + ["tolfunhist"]


def test_unchanged_elites_do_not_stop_the_search():
    es = DeepGA(np.ones(4), 10, sigma=0.3, perturbation=TABLE)
    recent = 10 + 30 * 4 // 10
    watch = rules(es)
    assert [watch.check(VARIED) for _ in range(3 * recent)] == [None] * 3 * recent
    watch = rules(es)
    assert [watch.check(np.full(10, 7.0)) for _ in range(recent)][-1] == "tolfun"


def test_a_long_stagnation_stops_the_search():
    es = CMAES(np.ones(4), 10, sigma=0.3, perturbation=TABLE)
    watch = rules(es)
    rng = np.random.default_rng(0)
    found = [watch.check(rng.normal(size=10)) for _ in range(800)]
    assert set(found[:500]) == {None}
    assert "stagnation" in found
    watch = rules(es)
    records = [watch.check(rng.normal(size=10) - (g % 80 == 0) * g) for g in range(800)]
    assert set(records) == {None}  # patience is 180 generations, plus a record younger than half of that


def test_every_search_has_a_generation_limit():
    es = SNES(np.ones(4), 10, sigma=0.3, perturbation=TABLE)
    watch = rules(es)
    found = [watch.check(VARIED + np.sin(g)) for g in range(watch.generation_limit)]
    assert found == [None] * (watch.generation_limit - 1) + ["generations"]


@pytest.mark.parametrize("value", [np.nan, -1e35])
def test_nonfinite_values_hide_neither_progress_nor_stagnation(value):
    es = CMAES(np.ones(4), 10, sigma=0.3, perturbation=TABLE)
    watch, spoilt = rules(es), np.where(VARIED == 4, value, VARIED)
    assert [watch.check(np.full(10, value)) for _ in range(30)] == [None] * 30
    assert [watch.check(spoilt - g) for g in range(30)] == [None] * 30
    watch, spoilt = rules(es), np.where(VARIED == 4, value, 7.0)
    assert [watch.check(spoilt) for _ in range(22)][-1] == "tolfun"


def test_the_condition_is_computed_only_once_every_few_generations():
    """MA-ES decomposes its matrix to compute the condition, its most expensive operation."""
    asked = []

    class Counted(MAES):
        @property
        def condition(self):
            asked.append(self.generation)
            return super().condition

    watch = rules(Counted(np.ones(40), 10, sigma=0.3, perturbation=TABLE))
    for g in range(40):
        watch.check(VARIED - g)
    assert len(asked) <= 1 + 40 // 4
