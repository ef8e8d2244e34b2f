"""The strategy that auto takes."""

import numpy as np
import pytest

import escalade
from escalade.strategies.registry import STRATEGIES
from escalade.wings.optimize.choice import choose


@pytest.mark.parametrize(
    ("dimension", "budget", "options", "name"),
    [
        (1, None, {}, "cma-es"),
        (100, 50, {}, "cma-es"),
        (101, None, {}, "cr-fm-nes"),
        (300, 299_000, {}, "cr-fm-nes"),
        (300, 300_000, {}, "ma-es"),
        (20_000, 10**8, {}, "cr-fm-nes"),
        (20_000, None, {"matrix": True}, "cma-es"),
        (200, None, {"restarts": True}, "ma-es"),
        (2000, None, {"restarts": True}, "sep-cma-es"),
        (200, None, {"population": 15}, "lm-ma-es"),
        (200, None, {"population": 16}, "cr-fm-nes"),
    ],
)
def test_it_goes_by_dimension_budget_matrix_and_restarts(dimension, budget, options, name):
    choice = choose(dimension, budget, **({"matrix": False, "restarts": False} | options))
    assert choice.name == name
    assert choice.why
    assert STRATEGIES[name].restarts or not options.get("restarts")


def test_optimize_says_what_it_took_and_why(capsys):
    def function(x):
        return float((x**2).sum())

    found = escalade.optimize(function, np.ones(120), "auto", budget=200, verbose=True)
    assert found.strategy == "cr-fm-nes"
    assert "auto takes cr-fm-nes: 120 parameters are too many for a matrix" in capsys.readouterr().out
    named = escalade.optimize(function, np.ones(120), "cr-fm-nes", budget=200)
    np.testing.assert_array_equal(found.best, named.best)
    assert escalade.optimize(function, np.ones(2), "auto", integers=[0], budget=50).strategy == "cma-es"
    assert escalade.optimize(function, np.ones(2), "auto", restarts="ipop", budget=50).strategy == "cma-es"
