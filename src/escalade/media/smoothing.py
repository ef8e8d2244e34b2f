"""Means of neighbouring points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def smoothed(values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Each value's mean with those before it, ``count`` in all or as many as there are.

    Args:
        values: shape (n,); those that are NaN are left out, and stay NaN.
        count: 1 changes nothing.
    """
    if count == 1 or not len(values):
        return values
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        means = _sums(np.where(known, values, 0.0), count) / _sums(known.astype(np.float64), count)
    return np.where(known, means, np.nan)


def _sums(values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """The sum of each value and those before it, ``count`` in all.

    Nothing is subtracted, for every small value behind a large one would be lost: a window is the end of one
    block of ``count`` values and the beginning of the next.
    """
    length = min(count, len(values))
    blocks = np.append(values, np.zeros(-len(values) % length)).reshape(-1, length)
    sums = blocks.cumsum(axis=1).ravel()[: len(values)]
    ends = blocks[:, ::-1].cumsum(axis=1)[:, ::-1].ravel()
    last = np.arange(length, len(values))
    last = last[(last + 1) % length != 0]  # others are of a whole block
    sums[last] += ends[last - length + 1]
    return np.asarray(sums)
