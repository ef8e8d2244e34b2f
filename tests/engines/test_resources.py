"""Limits of file sizes are one line."""

import errno

import pytest

from escalade import InputError
from escalade.support.shared_memory import anonymous_file


def test_shared_memory_beyond_the_limit_of_file_sizes_is_one_line(monkeypatch):
    def refuse(fd, length):
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr("os.ftruncate", refuse)
    with pytest.raises(InputError, match=r"64 MiB of shared memory .* \(ulimit -f\)"):
        anonymous_file(64 * 2**20)
