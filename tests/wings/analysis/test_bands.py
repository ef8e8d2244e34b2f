"""Several runs as one curve: the interquartile mean of their evaluations, and its interval."""

import numpy as np
import pytest

from escalade import InputError
from escalade.media.charts import write_charts
from escalade.wings.analysis.bands import Curve, band, band_charts
from escalade.wings.analysis.statistics import interquartile_mean


def curve(at, returns, solved=False):
    return Curve(np.array(at, float), np.array(returns, float), solved)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([3], 3), ([1, 5], 3), ([0, 1, 5], 2), ([0, 1, 2, 90], 1.5), ([9, 1, 2, 0, -50], 1), (range(12), 5.5)],
)
def test_the_interquartile_mean_ignores_a_quarter_at_each_end(values, expected):
    assert interquartile_mean(np.array(list(values), float)) == pytest.approx(expected)


def test_a_run_counts_with_its_most_recent_evaluation():
    steps = curve([1, 3, 5], [10, 20, 30])
    found = band([steps])
    assert (found.at[0], found.at[-1], found.runs) == (1, 5, 1)
    for at, value in zip(found.at, found.middle, strict=True):
        assert value == (10 if at < 3 else 20 if at < 5 else 30)
    np.testing.assert_array_equal(found.low, found.high)


def test_a_solved_run_keeps_its_value_and_an_unsolved_one_ends_the_band():
    quick, slow = curve([0, 2], [0, 100], solved=True), curve([1, 8], [0, 60])
    assert (band([quick, slow]).at[0], band([quick, slow]).at[-1]) == (1, 8)
    assert band([quick, slow]).middle[-1] == 80
    assert band([quick, curve([0, 4], [0, 60]), slow]).at[-1] == 4
    assert band([quick, curve([0, 6], [0, 60], solved=True)]).at[-1] == 6


def test_the_interval_resamples_whole_runs():
    chance = np.random.default_rng(1)
    returns = chance.normal(100.0, 10.0, size=40)
    found = band([curve([0, 1], [value, value + 5]) for value in returns])
    width = found.high - found.low
    # About twice 1.96 standard errors of an interquartile mean of normals, 1.09 times a mean's.
    assert 4.0 < width[0] < 11.0
    np.testing.assert_allclose(width[0], width[-1], rtol=1e-9)  # the same runs are drawn at every point
    assert found.low[0] < found.middle[0] < found.high[0]
    again = band([curve([0, 1], [value, value + 5]) for value in returns])
    np.testing.assert_array_equal(again.low, found.low)


def test_pictures_have_a_panel_for_each_task(tmp_path):
    bands = {
        "ars": band([curve([0, 5], [0, 9]), curve([0, 6], [1, 8])]),
        "pgpe": band([curve([0, 5], [0, 9])]),
    }
    write_charts(band_charts({f"Task{number}": bands for number in range(4)}, "seconds"), tmp_path / "b.svg")
    text = (tmp_path / "b.svg").read_text()
    assert text.count("<!-- Task") == 4
    assert text.count("<!-- ars (2 runs) -->") == 4
    assert text.count("<!-- pgpe (1 run) -->") == 4
    assert "seconds of training" in text
    with pytest.raises(InputError, match=r"must end in \.png"):
        write_charts(band_charts({"T": bands}), tmp_path / "b.txt")
