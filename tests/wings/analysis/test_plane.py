"""Behaviours of an archive in the plane, and the cells of it that they cover."""

import numpy as np
import pytest

from escalade.media.curves import Curves
from escalade.wings.analysis.plane import CELLS, Archived, coverage


def archived(behaviours):
    count = len(behaviours)
    return Archived(np.array(behaviours, np.float32), np.arange(1, count + 1), np.zeros(count, np.int64))


def covered(behaviours):
    """Cells with a behaviour after each of them."""
    generations = np.arange(1.0, len(behaviours) + 1)
    curves = Curves("run", {"generation": generations, "env_steps": 10 * generations})
    (line,) = coverage(archived(behaviours), curves, "steps").lines
    np.testing.assert_array_equal(line.at, 10 * generations)
    return line.values.tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_behaviours_of_any_number_have_two_places(size, count):
    places, axes = archived(np.random.default_rng(1).normal(size=(count, size))).places()
    assert places.shape == (count, 2)
    assert np.isfinite(places).all()
    assert len(axes) == 2


def test_of_many_numbers_the_places_keep_what_differs_most():
    behaviours = np.random.default_rng(1).normal(size=(50, 4)) * (1, 20, 0.1, 5)
    places, _ = archived(behaviours).places()
    np.testing.assert_allclose(places.std(axis=0), behaviours[:, [1, 3]].std(axis=0), rtol=0.1)


def test_coverage_counts_cells_of_behaviours_and_never_of_time():
    assert covered([[0.0], [0.0], [1.0], [0.01], [1.0]]) == [1, 1, 2, 2, 2]
    assert covered([[0, 0], [1, 1], [0, 1], [0, 1.0]]) == [1, 2, 3, 3]
    assert covered([[value, 0.0] for value in np.linspace(0, 1, 5 * CELLS)])[-1] == CELLS
