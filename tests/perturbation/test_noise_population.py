"""Populations and sums over their noise, compared with float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escalade.perturbation import GaussianPopulation, NoiseTable, slices, write_all
from escalade.perturbation.slices import TableSlices
from escalade.support.exact import one_thread

repeatable = settings(deadline=None, derandomize=True)
TABLE = NoiseTable(9, 2**14)


def gaussian(dimension=50, size=8, antithetic=True, scale=0.1, center=None):
    center = np.linspace(-2, 2, dimension, dtype=np.float32) if center is None else center
    return GaussianPopulation(center, scale, TABLE, 3, 4, size, antithetic)


@pytest.mark.parametrize("antithetic", [True, False])
def test_members_are_the_center_plus_scaled_noise_at_their_address(antithetic):
    scale = np.linspace(0.01, 0.5, 50, dtype=np.float32)
    population = gaussian(antithetic=antithetic, scale=scale)
    members = write_all(population).astype(np.float64)
    for member in range(8):
        pair, sign = (member // 2, (1, -1)[member % 2]) if antithetic else (member, 1)
        noise = TABLE.values[population.draws.starts[pair] :][:50].astype(np.float64)
        expected = population.center + sign * scale.astype(np.float64) * noise
        np.testing.assert_allclose(members[member], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [0.1, np.linspace(0.01, 0.5, 50, dtype=np.float32)])
def test_members_made_together_equal_those_made_one_by_one(kind, scale):
    population = gaussian(scale=scale, center=np.linspace(-2, 2, 50, dtype=kind))
    together, alone = np.empty((3, 50), kind), np.empty(50, kind)
    population.write_rows([1, 6, 7], together)
    for row, member in zip(together, [1, 6, 7], strict=True):
        population.write(member, alone)
        np.testing.assert_array_equal(row, alone)


@repeatable
@given(st.integers(0, 2**32), st.integers(1, 40), st.floats(1e-6, 1e3))
def test_mirrored_members_average_to_the_center(seed, dimension, scale):
    center = np.random.default_rng(seed).normal(size=dimension).astype(np.float32)
    around_zero = write_all(gaussian(dimension, scale=scale, center=np.zeros_like(center)))
    assert (around_zero[0::2] + around_zero[1::2] == 0).all()  # the perturbations cancel exactly
    assert (around_zero.astype(np.float64).sum(axis=0) == 0).all()

    members = write_all(gaussian(dimension, scale=scale, center=center))
    middle = (members[0::2].astype(np.float64) + members[1::2]) / 2
    one_ulp = np.spacing(np.maximum(abs(members[0::2]), abs(members[1::2])))
    assert (abs(middle - center) <= one_ulp).all()


@pytest.mark.parametrize("block", [7, 2**20])
@pytest.mark.parametrize("dimension", [1, 7, 100])
def test_weighted_sums_equal_float64(monkeypatch, block, dimension):
    monkeypatch.setattr(slices, "_BLOCK", block)
    rng = np.random.default_rng(dimension)
    starts, weights = rng.integers(0, TABLE.size - dimension, 31), rng.normal(size=31)
    weights[3] = 0.0
    shift = rng.normal(size=dimension).astype(np.float32)
    noise = np.stack([TABLE.values[s : s + dimension] for s in starts]).astype(np.float64)

    draws = TableSlices(TABLE.values, starts, dimension)
    np.testing.assert_allclose(draws.weighted_sum(weights), weights @ noise, rtol=1e-5, atol=1e-5)
    squares = draws.weighted_square_sum(weights)
    np.testing.assert_allclose(squares, weights @ noise**2, rtol=1e-5, atol=1e-5)
    about = draws.weighted_square_sum(abs(weights), shift)
    np.testing.assert_allclose(about, abs(weights) @ (noise - shift) ** 2, rtol=1e-5)


@pytest.mark.parametrize("dimension", [40_001, 70_000])
def test_weighted_sum_is_bit_identical_for_any_number_of_cores(dimension, monkeypatch):
    draws = TableSlices(NoiseTable(3, 2**18).values, np.arange(300) * 13, dimension)
    weights = np.linspace(-1, 1, 300)
    shift = np.linspace(-0.1, 0.1, dimension, dtype=np.float32)
    monkeypatch.setattr(slices, "THREADS_FROM", 0)
    sums = []
    for cores in (1, 2, 5):
        monkeypatch.setattr(slices, "cores", lambda cores=cores: cores)
        with one_thread():
            sums.append((draws.weighted_sum(weights), draws.weighted_square_sum(weights, shift)))
    for noise, squares in sums[1:]:
        np.testing.assert_array_equal(noise, sums[0][0])
        np.testing.assert_array_equal(squares, sums[0][1])
