"""Large arrays: shared with other processes without copies, or stored in a file."""

import errno
import os
import tempfile

import numpy as np
import pytest

from escalade import StorageFailure
from escalade.support.large import filed, memory_of, shared_copy
from escalade.support.shared_memory import LARGE


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_large_copy_is_placed_in_shared_memory(dtype):
    values = np.arange(LARGE // 4, dtype=dtype)
    copied = shared_copy(values)
    memory = memory_of(copied)
    assert copied.dtype == dtype
    assert copied.flags.writeable
    assert len(memory) == values.nbytes
    values[0] = 7
    assert copied[0] == 0
    np.testing.assert_array_equal(
        np.frombuffer(os.pread(memory.fd, 64, 0), dtype), copied[: 64 // dtype().nbytes]
    )


def test_small_arrays_and_slices_have_no_shared_memory():
    assert memory_of(shared_copy(np.zeros(5, np.float32))) is None
    copied = shared_copy(np.zeros(LARGE, np.float32))
    assert memory_of(copied) is memory_of(copied.reshape(2, -1))
    assert memory_of(copied[1:]) is None
    assert memory_of(b"abc") is None


@pytest.mark.parametrize("size", [3, LARGE])
def test_an_array_in_a_file_is_written_in_pieces_and_is_writable(size):
    pieces = [np.full(size, 1.0), np.full((2, size), 2.0, np.float32)]
    found = filed(iter(pieces), 3 * size, np.float32)
    assert found.dtype == np.float32
    assert found.shape == (3 * size,)
    np.testing.assert_array_equal(found[[0, size - 1, size, -1]], [1, 1, 2, 2])
    found[0] = 5.0
    assert found[0] == 5.0


def test_a_full_disk_is_reported_in_one_line_with_a_fix(monkeypatch):
    closed = []

    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *raised):
            closed.append(True)

        def write(self, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryFile", Full)
    monkeypatch.setattr(tempfile, "tempdir", "/full")
    message = (
        r"^a copy of the parameters cannot be written to /full \(.*No space left on device\); .* set TMPDIR$"
    )
    with pytest.raises(StorageFailure, match=message):
        filed([np.zeros(LARGE)], LARGE, np.float32)
    assert closed == [True]
    assert filed([np.zeros(3)], 3, np.float32).tolist() == [0.0] * 3  # it needs no file
