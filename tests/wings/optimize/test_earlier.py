"""Warm starts: the first distribution compared with cmaes, and searches from earlier points."""

import numpy as np
import pytest
from tests.later import Later

import escalade
from escalade.errors import InputError
from escalade.strategies import CMAES
from escalade.wings.optimize.space import EarlierPoints, fit_normal

cmaes = Later("cmaes")


def valley(x, shift=0.0):
    return (x[..., 0] + x[..., 1] - shift) ** 2 + 1000 * (x[..., 0] - x[..., 1]) ** 2


@pytest.mark.parametrize("dimension", [2, 17])
def test_the_warm_start_distribution_matches_cmaes(dimension):
    drawn = np.random.default_rng(dimension)
    points = drawn.normal(size=(120, dimension)) * np.arange(1, dimension + 1)
    values = drawn.normal(size=120)
    solutions = list(zip(points, values.tolist(), strict=True))
    center, sigma, covariance = cmaes.get_warm_start_mgd(solutions, gamma=0.1, alpha=0.3)
    found = fit_normal(EarlierPoints(points, values).best("minimize"), 0.3)
    np.testing.assert_allclose(found[0], center, rtol=1e-12)
    assert found[1] == pytest.approx(sigma, rel=1e-12)
    np.testing.assert_allclose(found[2], covariance, rtol=1e-9, atol=1e-12)


def test_the_best_tenth_respects_direction_and_ignores_nonfinite_values():
    points = np.arange(30.0).reshape(30, 1)
    values = np.where(np.arange(30) < 10, np.nan, np.arange(30.0))
    assert EarlierPoints(points, values).best("minimize").tolist() == [[10], [11]]
    assert EarlierPoints(points, values).best("maximize").tolist() == [[29], [28]]
    assert EarlierPoints([[1.0], [2.0]], [np.inf, 5.0]).best("maximize").tolist() == [[2]]


def test_a_search_started_from_earlier_points_needs_fewer_evaluations():
    tried = np.random.default_rng(3).uniform(-5, 5, (400, 2))
    known = EarlierPoints(tried, valley(tried, 4.0))
    options = {"bounds": (-5, 5), "sigma": 2.0, "target": 1e-6, "vectorized": True}
    warm = [escalade.optimize(lambda x: valley(x, 4.5), known, seed=seed, **options) for seed in range(3)]
    cold = [
        escalade.optimize(lambda x: valley(x, 4.5), [-3.0, 0.0], seed=seed, **options) for seed in range(3)
    ]
    assert {found.stop_reason for found in warm + cold} == {"target"}
    assert sum(found.evaluations for found in warm) < 0.7 * sum(found.evaluations for found in cold)


def test_restarts_ignore_earlier_points_and_integers_work():
    tried = np.random.default_rng(3).integers(-5, 6, (100, 3)).astype(float)
    known = EarlierPoints(tried, ((tried - 2) ** 2).sum(axis=1))
    found = escalade.optimize(
        lambda x: ((x - [2, 2.5, 2]) ** 2).sum(), known, "auto",
        integers=[0, 2], bounds=(-5, 5), restarts="ipop", budget=3000,
    )  # fmt: skip
    assert found.restarts > 0
    assert found.strategy == "cma-es"
    np.testing.assert_allclose(found.best, [2, 2.5, 2], atol=1e-4)


@pytest.mark.parametrize("size", [1e-34, 1e34])
def test_members_have_the_spread_of_a_covariance_of_any_magnitude(size):
    es = CMAES(np.zeros(3), 2000, 1.0, covariance=size * np.diag([1.0, 4.0, 1e-20]))
    np.testing.assert_allclose(es.ask().numpy().std(axis=0) / es.scale, 1, atol=0.1)
    es.tell(es.ask().numpy()[:, 0])
    np.testing.assert_allclose(es.ask().numpy().std(axis=0) / es.scale, 1, atol=0.1)


def test_cma_es_accepts_a_covariance_and_samples_from_it():
    covariance = np.array([[2.0, 1.9], [1.9, 2.0]])
    es = CMAES(np.zeros(2), 2000, 0.5, covariance=covariance)
    np.testing.assert_allclose(np.cov(es.ask().numpy().T), 0.25 * covariance, atol=0.06)
    covariance[:] = 0
    assert es.covariance[0, 0] == 2.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: EarlierPoints([[1.0], [2.0]], [1.0]),
            r"not \(2, 1\) and \(1,\)",
        ),
        (lambda: EarlierPoints([["a"]], [1.0]), "points must be numbers"),
        (lambda: EarlierPoints([[1.0]], [np.nan]), "at least one of their values"),
        (lambda: escalade.optimize(sum, EarlierPoints([[1.0]], [1.0]), "snes"), "needs strategy cma-es"),
        (lambda: escalade.optimize(sum, EarlierPoints([[3.0]], [1.0]), bounds=(0, 2)), "bounds"),
        (lambda: CMAES(np.zeros(2), covariance=np.eye(3)), r"shape \(3, 3\) must be of shape \(2, 2\)"),
        (lambda: CMAES(np.zeros(2), covariance=[[1, 0.5], [0, 1]]), "symmetric and positive definite"),
        (lambda: CMAES(np.zeros(2), covariance=np.diag([1, 1e-34])), "eigenvalues from 1e-34 to 1e"),
    ],
)
def test_impossible_arguments_are_refused_in_one_line(make, words):
    with pytest.raises(InputError, match=words) as raised:
        make()
    assert "\n" not in str(raised.value)
