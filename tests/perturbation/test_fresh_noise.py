"""Noise generated for each generation: a function of its address, like a table's."""

import numpy as np
import pytest

from escalade.perturbation import FreshNoise
from escalade.perturbation.fresh import MOST
from escalade.strategies import CMAES, SNES, DeepGA

SOURCE = FreshNoise()


def test_noise_depends_only_on_its_address_and_row():
    rows = SOURCE.draw(7, 3, 5, 9).rows
    np.testing.assert_array_equal(SOURCE.draw(7, 3, 5, 9).rows, rows)
    np.testing.assert_array_equal(SOURCE.draw(7, 3, 2, 9).rows, rows[:2])
    others = [SOURCE.draw(8, 3, 5, 9), SOURCE.draw(7, 4, 5, 9), SOURCE.draw(2**63 - 1, 2**62, 5, 9)]
    assert not any(np.isin(other.rows, rows).any() for other in others)


def test_noise_is_standard_normal_and_independent_across_generations():
    drawn = np.stack([SOURCE.draw(1, generation, 10, 10).rows.ravel() for generation in range(2000)])
    assert abs(drawn.mean()) < 4 / np.sqrt(drawn.size)
    assert abs(drawn.var() - 1) < 4 * np.sqrt(2 / drawn.size)
    assert abs((drawn[1:] * drawn[:-1]).mean()) < 4 / np.sqrt(drawn.size)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_and_sums_match_the_noise(dtype):
    draws, weights = SOURCE.draw(1, 0, 6, 4), np.array([1.0, 0.0, -2.0, 0.5, 3.0, -1.0])
    shift, scale, out = np.full(4, 0.25, dtype), np.linspace(1, 2, 4).astype(dtype), np.empty(4, dtype)
    draws.write(2, scale, out)
    tolerance = {"rtol": 1e-6, "atol": 1e-6}
    np.testing.assert_allclose(out, draws.rows[2] * scale, **tolerance)
    found = draws.weighted_sum(weights, dtype), draws.weighted_square_sum(weights, shift, dtype)
    assert {one.dtype for one in found} == {np.dtype(dtype)}
    np.testing.assert_allclose(found[0], weights @ draws.rows, **tolerance)
    np.testing.assert_allclose(found[1], weights @ (draws.rows - 0.25) ** 2, **tolerance)


def test_small_problems_use_fresh_noise_except_with_deep_ga():
    assert CMAES(np.zeros(MOST)).perturbation == SOURCE == SNES(np.zeros(3)).perturbation
    assert hasattr(CMAES(np.zeros(MOST + 1)).perturbation, "values")
    assert hasattr(DeepGA(np.zeros(3)).perturbation, "values")
