"""Behaviors of an archive in the plane, and the cells that they cover."""

import numpy as np
import pytest

from escalade.media.curves import Curves
from escalade.wings.analysis.panels import CELLS, Archived, coverage, paths


def archived(behaviors):
    count = len(behaviors)
    return Archived(np.array(behaviors, np.float32), np.arange(1, count + 1), np.arange(count) % 2)


@pytest.mark.parametrize(
    ("behaviors", "way"),
    [
        ([[5.0], [6.0], [7.0]], ([1, 3], [5, 7])),
        ([[0, 1], [9, 9], [2, 3.0]], ([0, 2], [1, 3])),
        ([[0, 1, 8], [9, 9, 9], [2, 3, 8.0]], ([0, 2], [1, 3])),
    ],
)
def test_the_path_of_a_center_has_its_first_two_coordinates(behaviors, way):
    first, _ = paths(archived(behaviors)).lines
    np.testing.assert_array_equal((first.at, first.values), way)


@pytest.mark.parametrize(
    ("behaviors", "cells"),
    [
        ([[0.0], [0.0], [1.0], [0.01], [1.0]], [1, 1, 2, 2, 2]),
        ([[0, 0], [1, 1], [0, 1], [0, 1.0]], [1, 2, 3, 3]),
        ([[value / 99, 0.0] for value in range(100)], [*np.repeat(range(1, CELLS), 5), *[CELLS] * 5]),
    ],
)
def test_coverage_counts_cells_of_behavior_coordinates_only(behaviors, cells):
    generations = np.arange(1.0, len(behaviors) + 1)
    curves = Curves({"generation": generations, "env_steps": 10 * generations})
    (line,) = coverage(archived(behaviors), curves, "steps").lines
    np.testing.assert_array_equal(line.at, 10 * generations)
    assert line.values.tolist() == cells
