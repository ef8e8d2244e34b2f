"""Axes: round ticks, ends that outliers do not move, lines that keep their highest and lowest points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from escalade.media.scales import averaged, labels, limits, short, thinned, ticks


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_are_round_inside_and_told_apart(low, width):
    high = low + width
    if high - low < 1e-9 * max(abs(low), abs(high)):
        return
    found = ticks(low, high)
    slack = 1e-6 * (high - low)
    assert 1 <= len(found) <= 6
    assert all(low - slack <= tick <= high + slack for tick in found)
    if high - low > 1e-3 * max(abs(low), abs(high)):
        assert len(set(labels(found))) == len(found)


def test_labels_share_a_unit():
    assert labels([0.0, 500_000.0, 1_000_000.0]) == ["0", "0.5M", "1.0M"]
    assert labels([-1500.0, -1000.0, -500.0, 0.0]) == ["-1,500", "-1,000", "-500", "0"]
    assert labels([0.0, 0.02, 0.04]) == ["0", "0.02", "0.04"]
    assert labels([0.0, 2e-6, 4e-6]) == ["0", "2e-06", "4e-06"]
    assert labels([0.01564, 0.01566, 0.01568]) == ["0.01564", "0.01566", "0.01568"]
    assert [short(value) for value in (3.14159, 1234.5, 1_532_000.0, -0.25)] == [
        "3.142",
        "1234",
        "1.53M",
        "-0.25",
    ]


def test_a_few_outliers_are_left_outside():
    values = np.append(np.linspace(0, 100, 200), [-1e6, np.nan, np.inf, 1e31])
    low, high = limits([values])
    assert -200 < low <= 0
    assert 100 < high < 110


@pytest.mark.parametrize("values", [[], [np.nan], [3.0], [0.0, 0.0], [-5.0, -5.0]])
def test_an_axis_has_two_ends_whatever_there_is(values):
    low, high = limits([np.array(values)])
    assert low < high
    assert all(low < value < high for value in values if np.isfinite(value))


def test_a_thinned_line_keeps_its_ends_of_each_stretch():
    at = np.arange(10_000.0)
    values = np.zeros(10_000)
    values[[1234, 8765]] = 7.0, -7.0
    x, y = thinned(at, values, 100)
    assert len(x) <= 200
    assert (np.diff(x) > 0).all()
    assert y.max() == 7.0
    assert y.min() == -7.0
    assert len(averaged([at, values], 50)[0]) == 50
    assert thinned(at[:20], values[:20], 100)[0] is not None
