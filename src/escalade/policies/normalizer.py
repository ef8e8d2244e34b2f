"""Running mean and variance of observations, and the normalization by them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # a worker starts without torch
    from torch import Tensor

Array = NDArray[np.float64]
A = TypeVar("A", NDArray[Any], "Tensor")

CLIP = 5.0
"""Normalized observations are clipped to [-CLIP, CLIP] by default, as in Salimans et al. 2017's code."""

_SMALLEST_STD = 1e-3  # relative to the largest deviation, if that is below 1
_LARGEST_MEAN = 1e100  # means beyond it count as diverged, because their squares must be finite


def normalize(observations: A, mean: A, inverse_std: A, clip: float = CLIP) -> A:
    """Return ``clip((x - mean) / std)`` of numpy arrays or torch tensors, float64, shape (..., size)."""
    standard: A = observations - mean
    standard *= inverse_std
    return standard if clip == math.inf else standard.clip(-clip, clip)


def divide_images(images: NDArray[Any], out: NDArray[np.float32]) -> NDArray[np.float32]:
    """Write images into ``out``, and divide uint8 images by 255."""
    if images.dtype == np.uint8:
        np.divide(images, np.float32(255), out=out)
    else:
        np.copyto(out, images, casting="same_kind")
    return out


@dataclass(frozen=True)
class Normalization:
    """The normalization of one generation: mean and 1 / standard deviation, shape (size,)."""

    mean: Array
    inverse_std: Array
    clip: float = CLIP
    """Limit of normalized observations; infinity means no limit."""
    count: float = 0.0
    """Number of observations behind mean and deviation; 0 if there are none, or the number is unknown."""

    def apply(self, observations: NDArray[np.floating]) -> NDArray[np.float32]:
        """Normalize observations, shape (..., size); see :func:`normalize`."""
        exact = observations.astype(np.float64, copy=False)
        standard = normalize(exact, self.mean, self.inverse_std, self.clip)
        if self.clip != math.inf:
            return standard.astype(np.float32)
        with np.errstate(over="ignore"):  # numbers too large for float32 become infinite
            return standard.astype(np.float32)


class Normalizer:
    """Count, mean and sum of squared deviations of all observations so far, shape (size,) each.

    Episodes are merged with the parallel formula of Chan, Golub and LeVeque 1983 ("Algorithms for computing
    the sample variance"), always in member order, because the rounding of the sum depends on the order.
    """

    def __init__(self, size: int) -> None:
        self.count = 0.0
        self.mean = np.zeros(size)
        self.squares = np.zeros(size)

    @classmethod
    def restored(cls, tensors: Mapping[str, NDArray[Any]], prefix: str = "normalizer.") -> Normalizer:
        """Return a normalizer with the state from :meth:`tensors`, ignoring other tensors."""
        normalizer = cls(len(tensors[f"{prefix}mean"]))
        normalizer.count = float(tensors[f"{prefix}count"][0])
        normalizer.mean = tensors[f"{prefix}mean"].copy()
        normalizer.squares = tensors[f"{prefix}squares"].copy()
        return normalizer

    @classmethod
    def of(cls, normalization: Normalization | None, size: int) -> Normalizer:
        """Return a normalizer that continues from this normalization, up to rounding.

        If ``normalization`` is None, return a new normalizer of ``size`` numbers.
        """
        if normalization is None:
            return cls(size)
        mean, inverse_std, count = normalization.mean, normalization.inverse_std, normalization.count
        normalizer = cls(len(mean))
        normalizer.count = count
        normalizer.mean, normalizer.squares = mean.copy(), count / inverse_std**2
        return normalizer

    def tensors(self, prefix: str = "normalizer.") -> dict[str, NDArray[Any]]:
        """Return the arrays for a checkpoint."""
        return {
            f"{prefix}count": np.array([self.count]),
            f"{prefix}mean": self.mean,
            f"{prefix}squares": self.squares,
        }

    def snapshot_if(self, enabled: bool | None, clip: float = CLIP) -> Normalization | None:
        """Return :meth:`snapshot`, or None if ``enabled`` is False or there is nothing to normalize."""
        return None if enabled is False or not len(self.mean) else self.snapshot(clip)

    def snapshot(self, clip: float = CLIP) -> Normalization:
        """Return the normalization of a generation. Before the first observation it only clips."""
        if self.count == 0:
            return Normalization(self.mean.copy(), np.ones_like(self.mean), clip)
        deviation = np.sqrt(self.squares / self.count)
        # A nearly constant dimension is not scaled: divided by a tiny deviation, its first real change would
        # be huge. If all deviations are small, such as a microscope's in meters, so is the threshold.
        smallest = _SMALLEST_STD * min(1.0, float(deviation.max(initial=0.0)))
        scale = np.where(deviation > smallest, deviation, 1.0)
        return Normalization(self.mean.copy(), 1.0 / scale, clip, self.count)

    def merge_episodes(self, seen: NDArray[np.int64], moments: Array) -> None:
        """Add episodes of ``seen`` (n,) observations with ``moments`` (n, 2, size).

        The moments are each episode's mean and its sum of squared deviations from that mean. Diverged
        episodes are ignored.
        """
        means, squares = moments[:, 0], moments[:, 1]
        with np.errstate(invalid="ignore"):
            finite = np.isfinite(squares).all(axis=1) & (np.abs(means) < _LARGEST_MEAN).all(axis=1)
        usable = finite & (seen > 0)
        if not usable.any():
            return
        counts, means, squares = seen[usable, None].astype(np.float64), means[usable], squares[usable]
        count, first = float(counts.sum()), means[0]
        # Sums relative to an observed mean: relative to 0, large offsets would round the deviations away.
        mean = first + (counts * (means - first)).sum(axis=0) / count
        self._merge(count, mean, squares.sum(axis=0) + (counts * (means - mean) ** 2).sum(axis=0))

    def _merge(self, count: float, mean: Array, squares: Array) -> None:
        both, delta = self.count + count, mean - self.mean
        self.mean = self.mean + delta * (count / both)
        self.squares = self.squares + squares + delta**2 * (self.count * count / both)
        self.count = both
