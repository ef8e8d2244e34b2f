"""The noise table: a function of its seed, read-only, sized for the policy."""

import os
import pickle
import sys

import numpy as np
import pytest

from escalade.perturbation import NoiseTable, table_size
from escalade.perturbation.table import LARGEST, SMALLEST


def test_table_is_a_function_of_the_seed():
    first, second, other = NoiseTable(123, 4096), NoiseTable(123, 4096), NoiseTable(124, 4096)
    assert (first.values == second.values).all()
    assert (first.values != other.values).any()
    np.testing.assert_array_equal(
        first.values[:3], np.array([0.5594394207000732, -0.8763942122459412, 0.7583796977996826], np.float32)
    )


def test_table_is_standard_normal():
    values = NoiseTable(0, 2**20).values.astype(np.float64)
    assert abs(values.mean()) < 0.005
    assert abs(values.std() - 1) < 0.005
    assert abs((values**4).mean() - 3) < 0.05


def test_second_mapping_holds_the_same_numbers():
    table = NoiseTable(5, 4096)
    attached = NoiseTable.attach(os.dup(table.fd), table.size, table.seed)
    np.testing.assert_array_equal(attached.values, table.values)
    values = attached.values
    del table
    assert np.isfinite(values).all()  # the memory lives as long as any mapping of it


def test_pickled_table_stores_its_numbers_as_an_out_of_band_array():
    table, arrays = NoiseTable(5, 4096), []
    rest = pickle.dumps(table, protocol=5, buffer_callback=arrays.append)
    assert len(rest) < 1000
    there = pickle.loads(rest, buffers=arrays)
    assert np.shares_memory(there.values, table.values)  # as in an object store, once per machine
    attached = NoiseTable.attach(os.dup(there.fd), there.size, there.seed)
    assert not np.shares_memory(attached.values, table.values)
    np.testing.assert_array_equal(attached.values, table.values)


def test_table_is_the_same_without_memfd(monkeypatch):
    here = NoiseTable(5, 4096)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(os, "memfd_create", raising=False)
    there = NoiseTable(5, 4096)
    monkeypatch.undo()
    attached = NoiseTable.attach(os.dup(there.fd), there.size, there.seed)
    np.testing.assert_array_equal(attached.values, here.values)
    assert os.fstat(there.fd).st_nlink == 0, "the file has a name"


@pytest.mark.parametrize("dimension", [1, 1000, 2**17, 2**18 + 1, 2**20, 2**24 + 1, 2**26])
def test_table_size_has_room_for_two_perturbations(dimension):
    size = table_size(dimension)
    assert size >= max(SMALLEST, 2 * dimension)
    assert size <= max(LARGEST, 2 * dimension)
