"""Parameters with equal bounds are not searched, but the function's points contain them."""

import numpy as np
import pytest

import escalade
from escalade import InputError

BOUNDS = [(None, None), (5, 5), (-9, 9), (2.5, 2.5)]


def valley(x):
    assert np.array_equal(x[..., [1, 3]], np.broadcast_to([5, 2.5], (*x.shape[:-1], 2)))
    return ((x - [1, 0, 2, 0]) ** 2).sum(-1)


@pytest.mark.parametrize("strategy", ["cma-es", "snes"])
def test_points_contain_fixed_parameters_and_only_the_others_are_searched(strategy):
    found = escalade.optimize(valley, [0, 5, 0, 2.5], strategy, bounds=BOUNDS, sigma=[1, 2, 3, 4], budget=300)
    alone = escalade.optimize(
        lambda x: valley(np.array([x[0], 5, x[1], 2.5])), [0, 0], strategy, bounds=[(None, None), (-9, 9)],
        sigma=[1, 3], budget=300,
    )  # fmt: skip
    assert found.best.shape == found.center.shape == (4,)
    np.testing.assert_array_equal(found.best, [alone.best[0], 5, alone.best[1], 2.5])
    np.testing.assert_array_equal(found.history, alone.history)


def test_restarts_and_batches_respect_fixed_parameters():
    options = {"bounds": ([-9, 5, -9, 2.5], [9, 5, 9, 2.5]), "target": 31.25 + 1e-8}
    found = escalade.optimize(
        valley, lambda rng: [*rng.uniform(size=1), 5, *rng.uniform(size=1), 2.5], integers=[1, 2],
        restarts="ipop", **options,
    )  # fmt: skip
    assert found.best.tolist() == pytest.approx([1, 5, 2, 2.5], abs=1e-3)
    for one in escalade.optimize_batch(
        lambda x, number: valley(x), [[0, 5, 0, 2.5], [3, 5, 3, 2.5]], **options
    ):
        assert one.stop_reason == "target"
    known = escalade.EarlierPoints(np.array([[0, 5, 0, 2.5], [1, 5, 1, 2.5]]), [3.0, 1.0])
    assert escalade.optimize(valley, known, **options).stop_reason == "target"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": (1, 1)}, "bounds fix every parameter"),
        ({"bounds": [(1, 1), (0, 2), (3, 2)]}, "parameter 2 has 3 and 2, but the lower bound must be below"),
        ({"bounds": [(4, 4), (0, 2), (0, 2)]}, "x0: parameter 0 is 1, outside its bounds 4 and 4"),
    ],
)
def test_bounds_that_fix_every_parameter_are_refused_by_name(options, message):
    with pytest.raises(InputError, match=message):
        escalade.optimize(lambda x: float((x**2).sum()), np.ones(3), **options)
