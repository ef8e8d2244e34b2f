"""The strategy selected by auto, and the schedules of restarts."""

from contextlib import suppress

import numpy as np
import pytest

import escalade
from escalade.strategies.registry import STRATEGIES
from escalade.wings.optimize.plan import bipop, choose, ipop


@pytest.mark.parametrize(
    ("dimension", "budget", "options", "name"),
    [
        (1, None, {}, "cma-es"),
        (100, 50, {}, "cma-es"),
        (101, None, {}, "cr-fm-nes"),
        (300, 299_000, {}, "cr-fm-nes"),
        (300, 300_000, {}, "ma-es"),
        (20_000, 10**8, {}, "cr-fm-nes"),
        (20_000, None, {"earlier": True}, "cma-es"),
        (200, None, {"restarts": True}, "ma-es"),
        (2000, None, {"restarts": True}, "sep-cma-es"),
        (200, None, {"population": 15}, "lm-ma-es"),
        (200, None, {"population": 16}, "cr-fm-nes"),
    ],
)
def test_auto_selects_by_dimension_budget_earlier_points_and_restarts(dimension, budget, options, name):
    assert choose(dimension, budget, **({"earlier": False, "restarts": False} | options))[0] == name
    assert STRATEGIES[name].restarts or not options.get("restarts")


def test_optimize_prints_the_selected_strategy_and_the_reason(capsys):
    def function(x):
        return float((x**2).sum())

    found = escalade.optimize(function, np.ones(120), "auto", budget=200, verbose=True)
    assert found.strategy == "cr-fm-nes"
    assert (
        "auto selected cr-fm-nes: 120 parameters are too many for a covariance matrix"
        in capsys.readouterr().out
    )
    named = escalade.optimize(function, np.ones(120), "cr-fm-nes", budget=200)
    np.testing.assert_array_equal(found.best, named.best)
    assert escalade.optimize(function, np.ones(2), "auto", integers=[0], budget=50).strategy == "cma-es"


def test_ipop_doubles_the_population():
    starts = list(ipop(7, np.random.default_rng(0)))
    assert [start.population for start in starts] == [7 * 2**k for k in range(10)]
    assert {(start.sigma_factor, start.budget) for start in starts} == {(1.0, None)}


def test_bipop_spends_as_much_on_small_populations_as_on_large_ones():
    schedule = bipop(10, np.random.default_rng(0))
    assert next(schedule).population == 10
    spent, large, sizes = {True: 500, False: 0}, [10], set()  # the first search counts as small
    start = schedule.send(500)
    with suppress(StopIteration):
        for _ in range(400):
            small = start.budget is not None
            assert (spent[True] < spent[False]) == small
            if small:
                assert 10 <= start.population <= large[-1]
                assert 0.01 <= start.sigma_factor <= 1
                assert start.budget == max(spent[False] // 2, start.population)
                sizes.add(start.population)
            else:
                large.append(start.population)
            used = min(start.population * 100, start.budget or 10**9)
            spent[small] += used
            start = schedule.send(used)
    assert len(sizes) > 10
    assert large == [10 * 2**k for k in range(10)]
