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
    sums = np.cumsum(np.where(known, values, 0.0))
    counts = np.cumsum(known)
    sums[count:] -= sums[:-count].copy()
    counts[count:] -= counts[:-count].copy()
    with np.errstate(invalid="ignore"):
        return np.where(known, sums / counts, np.nan)
