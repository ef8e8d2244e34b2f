"""Matrix products are bit-identical for a row at any position, among any other rows, with any BLAS kernel."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from escalade.policies.population.product import WAYS, Way, is_correct, way

SHAPES = [(17, 256), (256, 256), (256, 6), (64, 64), (5, 3), (27, 16), (48, 192), (576, 64), (300, 1), (1, 9)]


def multiply_padded(rows, matrix, chosen):
    padded = np.zeros((-(-len(rows) // chosen.multiple) * chosen.multiple, rows.shape[1]), np.float32)
    padded[: len(rows)] = rows
    out = np.full((len(padded), matrix.shape[1]), np.nan, np.float32)
    chosen.multiply(padded, matrix, out)
    return out[: len(rows)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_row_is_bit_identical_at_any_position_among_any_others(shape):
    chance = np.random.default_rng(5)
    rows, matrix = chance.normal(size=(150, shape[0])), chance.normal(size=shape)
    rows, matrix = rows.astype(np.float32), matrix.astype(np.float32)
    chosen = way(*shape)
    expected = multiply_padded(rows, matrix, chosen)
    for count in (1, 2, 7, 8, 13, 16, 31, 64, 65, 100, 149):
        some = chance.permutation(150)[:count]
        np.testing.assert_array_equal(multiply_padded(rows[some], matrix, chosen), expected[some])


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_every_method_computes_the_product(number):
    chance = np.random.default_rng(6)
    rows, matrix = chance.normal(size=(83, 40)), chance.normal(size=(40, 70))
    found = multiply_padded(rows.astype(np.float32), matrix.astype(np.float32), WAYS[number])
    np.testing.assert_allclose(found, rows @ matrix, rtol=1e-4, atol=1e-4)


def multiply_backwards(rows, matrix):
    return rows[:, ::-1] @ matrix[::-1]


def order_depends_on_row_count(rows, matrix, out):
    out[...] = rows @ matrix if len(rows) > 24 else multiply_backwards(rows, matrix)


def order_depends_on_row_position(rows, matrix, out):
    out[:] = rows @ matrix
    out[6:12] = multiply_backwards(rows[6:12], matrix)


@pytest.mark.parametrize("product", [order_depends_on_row_count, order_depends_on_row_position])
def test_method_with_row_dependent_summation_order_is_detected(product):
    assert not is_correct(Way(8, product), 256, 256)
    assert is_correct(WAYS[-1], 256, 256)


@pytest.mark.slow("src/escalade/policies", "tests/policies")
@pytest.mark.parametrize("kernels", ["Haswell", "Zen", "Sandybridge", "Nehalem"])
def test_row_is_bit_identical_with_kernels_of_other_processors(kernels):
    processor = Path("/proc/cpuinfo")
    if not processor.exists() or not {"avx2", "fma"} <= set(processor.read_text().split()):
        pytest.skip("this processor has not the instructions of these kernels")
    here = "test_row_is_bit_identical_at_any_position_among_any_others"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", here, __file__]
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernels, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
