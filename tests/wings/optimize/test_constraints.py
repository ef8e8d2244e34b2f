"""Constraints as functions, as SciPy objects, as returned violations, and in ask and tell."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import escalade
from escalade import InputError
from escalade.strategies import CMAES, RMES, SNES
from escalade.wings.optimize.lagrangian import AugmentedLagrangian


def sphere(x):
    return (x**2).sum()


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def half(x):  # x[0] + ... >= 2
    return 2 - x.sum()


def disc(x):
    return (x**2).sum() - 0.5


def nonlinear(fun, lower, upper):
    """Has the attributes of scipy.optimize.NonlinearConstraint that we read."""
    return SimpleNamespace(fun=fun, lb=lower, ub=upper)


def linear(matrix, lower, upper):
    return SimpleNamespace(A=matrix, lb=lower, ub=upper)


@pytest.mark.parametrize("strategy", ["cma-es", "sep-cma-es", "snes", "cr-fm-nes"])
def test_strategies_find_the_optimum_on_a_constraint(strategy):
    found = escalade.optimize(sphere, np.full(4, 5.0), strategy, constraints=half, budget=6000, seed=1)
    assert found.feasible
    assert half(found.best) <= 0
    assert found.violations.tolist() == [0]
    assert "feasible" in found._repr_html_()
    assert found.best_fitness == sphere(found.best)
    np.testing.assert_allclose(found.best, 0.5, atol=1e-3)


def test_optima_at_a_vertex_and_on_a_curve_are_found():
    lines = np.random.default_rng(1).normal(size=(9, 3))
    lines[:, 0] = abs(lines[:, 0])
    found = escalade.optimize(lambda x: -x[0], np.array([-9.0, 0, 0]), constraints=lambda x: lines @ x)
    assert found.feasible
    assert abs(found.best).max() < 1e-6
    found = escalade.optimize(rosenbrock, np.array([-1.0, 1.0]), constraints=[disc, lambda x: x[0] - 5])
    assert found.feasible
    assert found.violations.shape == (2,)
    assert abs(disc(found.best)) < 1e-6


def test_a_constraint_that_is_never_active_does_not_change_the_result():
    options = {"budget": 200, "seed": 4}
    plain = escalade.optimize(rosenbrock, np.zeros(3), **options)
    under = escalade.optimize(rosenbrock, np.zeros(3), constraints=lambda x: x - 100, **options)
    np.testing.assert_array_equal(plain.best, under.best)
    np.testing.assert_array_equal(plain.history, under.history)


def test_scipy_constraints_hold_between_their_bounds():
    optimize = pytest.importorskip("scipy.optimize")
    rows = [[1, 1, 1], [1, -1, 0]]
    constraints = [
        optimize.LinearConstraint(rows, [1.5, -np.inf], [np.inf, -0.5]),
        optimize.NonlinearConstraint(lambda x: x[2], -1, 0.25),
    ]
    found = escalade.optimize(sphere, [0.0, 0.0, 0.0], constraints=constraints)
    assert found.feasible
    assert len(found.violations) == 4
    np.testing.assert_allclose(found.best, [0.375, 0.875, 0.25], atol=1e-5)


def test_two_equal_bounds_are_an_equality():
    circle = nonlinear(lambda x: (x**2).sum(), 2, 2)
    found = escalade.optimize(lambda x: x.sum(), [1.0, 0.5], constraints=circle)
    assert found.feasible
    np.testing.assert_allclose(found.best, -1, atol=1e-3)
    np.testing.assert_allclose((found.best**2).sum(), 2, atol=1.1e-6)


def test_the_function_can_return_its_violations_in_every_calling_mode():
    def function(x):
        return sphere(x), [half(x), -x[0]]

    def rows(x):
        return (x**2).sum(1), np.stack([2 - x.sum(1), -x[:, 0]], axis=1)

    options = {"budget": 60, "seed": 2}
    separate = escalade.optimize(sphere, np.ones(3), constraints=[half, lambda x: -x[0]], **options)
    together = [
        escalade.optimize(function, np.ones(3), constraints=True, **options),
        escalade.optimize(function, np.ones(3), constraints=True, workers=2, **options),
        escalade.optimize(function, torch.ones(3), constraints=True, **options),
    ]
    for found in together:
        np.testing.assert_array_equal(np.asarray(found.best), separate.best)
    at_once = escalade.optimize(rows, np.ones(3), constraints=True, vectorized=True, **options)
    np.testing.assert_allclose(at_once.best, separate.best)


def test_infeasible_points_may_have_nan_values_and_failures_count():
    def function(x):
        if x[1] > 30:
            raise OSError
        return -np.log(x).sum() if (x > 0).all() else np.nan

    found = escalade.optimize(
        function, [-2.0, 29.0], constraints=[lambda x: x.sum() - 3, lambda x: -x], catch=OSError, sigma=2.0
    )
    assert found.feasible
    assert found.failures > 0
    np.testing.assert_allclose(found.best, 1.5, atol=1e-5)


def test_the_least_violated_point_is_returned_if_no_point_is_feasible():
    found = escalade.optimize(
        sphere, np.full(2, 3.0), constraints=[lambda x: 1 - x[0], lambda x: x[0] + 1], target=100, budget=3000
    )
    assert not found.feasible
    assert found.stop_reason != "target"  # only a feasible point can reach the target
    np.testing.assert_allclose(found.violations.sum(), 2, rtol=1e-6)
    assert found.best_fitness == sphere(found.best)


def test_maximizing_with_an_integer_and_a_fixed_parameter():
    found = escalade.optimize(
        lambda x: -sphere(x - 0.3),
        [3, 5.0, 5.0, 0.5],
        direction="maximize",
        integers=[0],
        bounds=[(0, 9), (None, None), (None, None), (0.5, 0.5)],
        constraints=linear([[1, 1, 1, 1]], 3.5, np.inf),
        budget=3000,
    )
    assert found.feasible
    np.testing.assert_allclose(found.best, [1, 1, 1, 0.5], atol=0.02)


def test_every_restart_has_its_own_multipliers():
    found = escalade.optimize(sphere, np.full(2, 3.0), constraints=half, restarts="ipop", budget=4000)
    assert found.restarts > 0
    assert found.feasible
    np.testing.assert_allclose(found.best, 1, atol=1e-5)


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        (3, "functions g"),
        ([half, {"type": "eq"}], "functions g"),
        (linear([[1, 1, 1]], 0, 1), "2 columns"),
        (SimpleNamespace(fun=half, lb=0, ub=1, keep_feasible=True), "keep_feasible"),
        (lambda x: "no", "constraint 0 must return numbers, not 'no'"),
        (linear([[1, np.nan]], 0, 1), "A must be finite"),
        (nonlinear(half, np.nan, 1), "lb and ub must not be NaN"),
        (nonlinear(half, None, 1), "lb and ub must not be NaN or None"),
        (nonlinear(half, "a", 1), "lb must be numbers, not 'a'"),
        (nonlinear(half, 2, 1), "lb must not be above ub"),
        (nonlinear(half, [0, 0, 0], [1, 1]), "lb has 3 numbers, but ub has 2"),
        (nonlinear(half, [0, 0], 1), "constraint 0 returned 1 numbers for a point, but its lb has 2"),
        (True, "return .value, violations."),
    ],
)
def test_impossible_constraints_are_refused_in_one_line(constraints, words):
    with pytest.raises(InputError, match=words):
        escalade.optimize(sphere, [1.0, 1.0], constraints=constraints)


def test_options_incompatible_with_constraints_are_refused():
    with pytest.raises(InputError, match="noisy"):
        escalade.optimize(sphere, [1.0, 1.0], constraints=half, noisy=True)
    with pytest.raises(InputError, match="asynchronous"):
        escalade.optimize(sphere, [1.0, 1.0], constraints=half, asynchronous=True, workers=1)
    with pytest.raises(InputError, match="work with RMES, which compares"):
        escalade.optimize(sphere, [1.0, 1.0], "rm-es", constraints=half)
    with pytest.raises(InputError, match="work with RMES, which compares"):
        escalade.Constrained(RMES(torch.ones(2), sigma=0.5))
    with pytest.raises(InputError, match="one point has 1 and another has 2"):
        escalade.optimize(lambda x: (0.0, [1.0] * (1 + (x[0] > 0))), [0.0], constraints=True)


def step(es):
    x = es.ask()
    es.tell(-(x**2).sum(dim=1), torch.stack([2 - x.sum(dim=1), -x[:, 0]], dim=1))


def test_ask_and_tell_with_constraints_and_a_restored_state():
    def make():
        return escalade.Constrained(
            CMAES(torch.full((3,), 4.0, dtype=torch.float64), sigma=1.0, direction="maximize")
        )

    es, resumed = make(), make()
    for _ in range(60):
        step(es)
    resumed.load_state_dict(es.state_dict())
    for _ in range(120):
        step(es)
        step(resumed)
    assert torch.equal(es.result.best, resumed.result.best)
    assert torch.equal(es.strategy.center, resumed.strategy.center)
    np.testing.assert_array_equal(es.result.history, resumed.result.history)
    np.testing.assert_array_equal(es.result.violations, [0, 0])
    assert es.result.feasible
    np.testing.assert_allclose(es.result.best, 2 / 3, atol=1e-5)
    with pytest.raises(InputError, match="without constraints"):
        make().load_state_dict(es.strategy.state_dict())


def test_tell_refuses_calls_before_ask_and_wrong_shapes():
    es = escalade.Constrained(SNES(torch.ones(2), population=6, sigma=1.0))
    with pytest.raises(InputError, match="call ask"):
        es.tell(np.zeros(6), np.zeros((6, 1)))
    es.ask()
    with pytest.raises(InputError, match=r"violations \(6, constraints\)"):
        es.tell(np.zeros(6), np.zeros(6))
    assert not es.result.feasible
    assert torch.equal(es.result.best, torch.ones(2))


def test_the_lagrangian_matches_the_paper_and_starts_at_the_first_violation():
    lagrangian = AugmentedLagrangian(2)
    values, met = np.array([3.0, 1.0, 2.0, 7.0]), np.array([[-1.0], [-4.0], [-3.0], [-2.0]])
    np.testing.assert_array_equal(lagrangian.merits(values, met), values)
    assert lagrangian.weights.tolist() == [0]
    crossed = np.array([[1.0], [-4.0], [np.nan], [-2.0]])
    merits = lagrangian.merits(values, crossed)
    assert np.isnan(merits[2])
    assert merits[0] > values[0]  # violated
    assert merits[3] == values[3]  # far from the bound, and the multiplier is still 0
    assert lagrangian.weights[0] > 0
    lagrangian.multipliers[:], lagrangian.weights[:] = 2.0, 4.0
    penalties = lagrangian._penalties(np.array([[1.0], [-0.25], [-9.0]]))
    np.testing.assert_allclose(penalties, [2 + 2, -0.5 + 0.125, -(2.0**2) / 8])
