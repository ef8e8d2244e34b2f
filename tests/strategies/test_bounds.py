"""Bounds: every point is mapped smoothly into the box, and every point of the box is reached."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escalade.strategies.bounds import Bounds

repeatable = settings(deadline=None, derandomize=True)
BOXES = [(0, 1), (-5, 300), (None, 2), (-1e-3, None), (None, None), (-np.inf, 0), (1e6, 1e6 + 1)]
boxes = pytest.mark.parametrize("box", BOXES, ids=str)


@repeatable
@given(st.sampled_from(BOXES), st.floats(-1e12, 1e12))
def test_every_point_is_mapped_into_the_box(box, value):
    bounds = Bounds(box, 1)
    x = bounds.apply(np.array([value]))
    assert np.isfinite(x).all()
    assert (x >= bounds.lower).all()
    assert (x <= bounds.upper).all()


@repeatable
@given(st.sampled_from(BOXES), st.floats(0, 1))
def test_invert_finds_a_point_for_every_point_of_the_box(box, where):
    bounds = Bounds(box, 1)
    low = bounds.lower if np.isfinite(bounds.lower).all() else np.maximum(-1e3, bounds.upper - 2e3)
    high = bounds.upper if np.isfinite(bounds.upper).all() else low + 2e3
    x = np.minimum(np.where(np.isfinite(low), low, -1e3) + where * 1.0, high)
    np.testing.assert_allclose(bounds.apply(bounds.invert(x)), x, rtol=1e-12, atol=1e-12)


@boxes
def test_map_is_the_identity_far_from_the_bounds(box):
    bounds = Bounds(box, 3)
    low = np.where(np.isfinite(bounds.lower), bounds.lower, bounds.upper - 10)
    low = np.where(np.isfinite(low), low, -5)
    high = np.where(np.isfinite(bounds.upper), bounds.upper, low + 10)
    middle = (low + high) / 2
    np.testing.assert_array_equal(bounds.apply(middle), middle)
    np.testing.assert_array_equal(bounds.invert(middle), middle)


@pytest.mark.parametrize("box", [(0, 1), (-5, 300), (None, 2), (-1e-3, None)])
def test_map_is_smooth_with_slope_at_most_one(box):
    bounds = Bounds(box, 1)
    ends = [bound for bound in box if bound is not None]
    grid = np.linspace(min(ends) - 3, max(ends) + 3, 200_001)[:, None]
    x = bounds.apply(grid)[:, 0]
    slope = np.diff(x) / np.diff(grid[:, 0])
    assert abs(slope).max() <= 1 + 1e-6
    margins = zip(box, (bounds._low_margin[0], bounds._high_margin[0]), strict=True)
    margin = min(margin for bound, margin in margins if bound is not None)
    assert abs(np.diff(slope)).max() <= 1.01 * (grid[1, 0] - grid[0, 0]) / (2 * margin) + 1e-6


def test_each_parameter_has_its_own_bounds():
    bounds = Bounds(([0, -np.inf, -1], [1, 5, np.inf]), 3)
    assert bounds.both.tolist() == [True, False, False]
    inside = bounds.apply(np.array([[7.3, -1e5, 1e5], [0.5, 1e5, -1e5]]))
    assert (inside >= [0, -np.inf, -1]).all()
    assert (inside <= [1, 5, np.inf]).all()
    assert inside[0, 1] == -1e5
    assert inside[0, 2] == 1e5


def test_arguments_are_not_modified():
    bounds, points = Bounds((0, 1), 2), np.array([[3.0, -2.0]])
    bounds.apply(points), bounds.invert(np.array([0.0, 1.0]))
    assert points.tolist() == [[3.0, -2.0]]
    free = Bounds(None, 2)
    inverted = free.invert(points[0])
    inverted[0] = 9
    assert points.tolist() == [[3.0, -2.0]]


class ScipyStyleBounds:
    lb, ub = [0.0, 2.0], 3.0


@pytest.mark.parametrize(
    ("form", "lower", "upper"),
    [
        ([(0, 1), (2, None), (None, 3)], [0, 2, -np.inf], [1, np.inf, 3]),
        (((0, 1), (2, 3), (4, 5)), [0, 2, 4], [1, 3, 5]),
        (np.array([(0, 1), (2, 3), (4, 5)]), [0, 2, 4], [1, 3, 5]),
        ([(0, 1)], [0], [1]),
        (([0, None, None], [1, 5, None]), [0, -np.inf, -np.inf], [1, 5, np.inf]),
        # Two parameters.
        ([(-5, 5), (-5, 5)], [-5, -5], [5, 5]),
        ([(0, None), (None, 3)], [0, -np.inf], [np.inf, 3]),
        (np.array([(0, 1), (2, 3)]), [0, 2], [1, 3]),
        ([0, 1], [0, 0], [1, 1]),
        ([[0, 0, 0], [1, 1, 1]], [0, 0, 0], [1, 1, 1]),
        (([0, 1], [2, 3]), [0, 1], [2, 3]),
        (tuple(np.array([(0, 1), (2, 3)])), [0, 1], [2, 3]),
        ((0, 1), [0, 0], [1, 1]),
        (ScipyStyleBounds(), [0, 2], [3, 3]),
    ],
)
def test_pairs_and_scipy_bounds_are_accepted(form, lower, upper):
    bounds = Bounds(form, len(lower))
    np.testing.assert_array_equal(bounds.lower, lower)
    np.testing.assert_array_equal(bounds.upper, upper)
