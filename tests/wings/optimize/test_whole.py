"""Integer parameters are rounded within their bounds, and neighboring values stay reachable."""

import numpy as np
import pytest

import escalade
from escalade import InputError
from escalade.strategies import CMAES
from escalade.wings.optimize.space import SearchSpace, Start


@pytest.mark.parametrize("strategy", ["cma-es", "sep-cma-es", "xnes", "cr-fm-nes"])
def test_integers_are_found_if_rounding_alone_would_stop_early(strategy):
    target = np.array([3, -2, 7, 0, 1, 0.3, 0.3, 0.3])

    def function(x):
        assert (x[:5] == np.rint(x[:5])).all()
        assert (abs(x[:5]) <= 10).all()
        return float((10.0 ** (3 * np.arange(8) / 7) * (x - target) ** 2).sum())

    bounds = [(-10.4, 10.4)] * 5 + [(None, None)] * 3
    options = {"sigma": 2.0, "target": 1e-6, "budget": 40_000, "restarts": None}
    for seed, integers in enumerate((range(5), np.arange(8) < 5)):
        found = escalade.optimize(
            function, np.zeros(8), strategy, bounds=bounds, integers=integers, seed=seed, **options
        )
        assert found.stop_reason == "target"
        np.testing.assert_array_equal(found.best[:5], target[:5])


def test_a_search_with_tiny_sigma_still_samples_different_integers():
    def function(x):
        return float(((x - [7, 2]) ** 2).sum())

    found = escalade.optimize(function, [5, 5], integers=[0, 1], sigma=1e-6, target=0.0, seed=3)
    assert found.best.tolist() == [7, 2]


def test_a_search_may_start_half_way_between_two_integers_and_restart():
    found = escalade.optimize(
        lambda x: float((x[0] - 1) ** 2 + abs(x[1]) + 3 * (1 - np.cos(2 * np.pi * x[1]))), [0.5, 3.0],
        bounds=[(0, 1), (-9, 9)], integers=[0], restarts="ipop", target=1e-7, budget=20_000,
    )  # fmt: skip
    assert found.stop_reason == "target"
    assert found.best[0] == 1


@pytest.mark.parametrize(("dimension", "first", "later"), [(5, 0.2, 0.1), (200, 0.0141, 0.0141)])
def test_integers_mutate_less_often_in_high_dimensions_and_after_a_restart(dimension, first, later):
    space = SearchSpace(np.zeros(dimension), 1e-6, None, 0, integers=[0, 2])
    for number, floor in enumerate((first, later)):
        made = space.make(CMAES, Start(None), number)
        assert made.scale[0] == made.scale[2] == pytest.approx(floor, rel=0.03)
        assert made.scale[1] == pytest.approx(1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"integers": [5]}, "index 5 is out of range; use 0 to 2"),
        ({"integers": [[0]]}, "must be indices of parameters"),
        ({"integers": [True, False]}, "one value for each of the 3 parameters"),
        ({"integers": [0], "bounds": (0.2, 0.9)}, "parameter 0 contain fewer than two integers"),
    ],
)
def test_bad_integers_are_refused_by_name(options, message):
    with pytest.raises(InputError, match=message):
        escalade.optimize(lambda x: float((x**2).sum()), np.full(3, 0.5), **options)
