"""Running moments of the observations, and the normalisation they give."""

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
"""Normalised observations are clipped to [-CLIP, CLIP] by default, as in Salimans et al. 2017's code."""

_SMALLEST_STD = 1e-3  # in units of the largest, where that is below 1
_LARGEST_MEAN = 1e100  # of an episode that has not diverged: its square must be a number too


def normalize(observations: A, mean: A, inverse_std: A, clip: float = CLIP) -> A:
    """``clip((x - mean) / std)`` of numpy arrays or of torch tensors, float64, shape (..., size)."""
    standard: A = observations - mean
    standard *= inverse_std
    return standard if clip == math.inf else standard.clip(-clip, clip)


def divide_images(images: NDArray[Any], out: NDArray[np.float32]) -> NDArray[np.float32]:
    """Write images into ``out``, those of bytes divided by 255."""
    if images.dtype == np.uint8:
        np.divide(images, np.float32(255), out=out)
    else:
        np.copyto(out, images, casting="same_kind")
    return out


@dataclass(frozen=True)
class Normalization:
    """A normaliser as it stands during one generation: mean and 1 / standard deviation, shape (size,)."""

    mean: Array
    inverse_std: Array
    clip: float = CLIP
    """The largest normalised observation; infinite for none."""
    count: float = 0.0
    """Observations that mean and deviation were taken of; 0 where there were none, or it is not known."""

    def apply(self, observations: NDArray[np.floating]) -> NDArray[np.float32]:
        """Normalise observations, shape (..., size); see :func:`normalize`."""
        exact = observations.astype(np.float64, copy=False)
        standard = normalize(exact, self.mean, self.inverse_std, self.clip)
        if self.clip != math.inf:
            return standard.astype(np.float32)
        with np.errstate(over="ignore"):  # of what is too large for float32
            return standard.astype(np.float32)


class Normalizer:
    """Count, mean and sum of squared deviations of every observation seen, shape (size,) each.

    Merged with the parallel formula of Chan, Golub and LeVeque 1983 ("Algorithms for computing
    the sample variance"), always in member order: the sum's bits depend on the order.
    """

    def __init__(self, size: int) -> None:
        self.count = 0.0
        self.mean = np.zeros(size)
        self.squares = np.zeros(size)

    @classmethod
    def restored(cls, tensors: Mapping[str, NDArray[Any]], prefix: str = "normalizer.") -> Normalizer:
        """The normaliser whose :meth:`tensors` these are; others beside them are left alone."""
        normalizer = cls(len(tensors[f"{prefix}mean"]))
        normalizer.count = float(tensors[f"{prefix}count"][0])
        normalizer.mean = tensors[f"{prefix}mean"].copy()
        normalizer.squares = tensors[f"{prefix}squares"].copy()
        return normalizer

    @classmethod
    def of(cls, normalization: Normalization | None, size: int) -> Normalizer:
        """The normaliser that gives this normalisation, up to the last bits, and learns on from it.

        Without one, a new normaliser of ``size`` numbers.
        """
        if normalization is None:
            return cls(size)
        mean, inverse_std, count = normalization.mean, normalization.inverse_std, normalization.count
        normalizer = cls(len(mean))
        normalizer.count = count
        normalizer.mean, normalizer.squares = mean.copy(), count / inverse_std**2
        return normalizer

    def tensors(self, prefix: str = "normalizer.") -> dict[str, NDArray[Any]]:
        """Return the arrays that a checkpoint keeps."""
        return {
            f"{prefix}count": np.array([self.count]),
            f"{prefix}mean": self.mean,
            f"{prefix}squares": self.squares,
        }

    def snapshot_if(self, enabled: bool | None, clip: float = CLIP) -> Normalization | None:
        """The :meth:`snapshot` of a generation; None where ``enabled`` is False or nothing is normalised."""
        return None if enabled is False or not len(self.mean) else self.snapshot(clip)

    def snapshot(self, clip: float = CLIP) -> Normalization:
        """The normalisation of a generation. Before any observation it changes nothing, but for ``clip``."""
        if self.count == 0:
            return Normalization(self.mean.copy(), np.ones_like(self.mean), clip)
        deviation = np.sqrt(self.squares / self.count)
        # A dimension that has hardly moved keeps its scale: dividing by next to nothing would turn its first
        # movement into an explosion. Where all are small, such as a microscope's metres, so is the bound.
        smallest = _SMALLEST_STD * min(1.0, float(deviation.max(initial=0.0)))
        scale = np.where(deviation > smallest, deviation, 1.0)
        return Normalization(self.mean.copy(), 1.0 / scale, clip, self.count)

    def merge_episodes(self, seen: NDArray[np.int64], moments: Array) -> None:
        """Add episodes of ``seen`` (n,) observations with ``moments`` (n, 2, size).

        The moments are each episode's mean and its sum of squared deviations from that mean. Diverged
        episodes are left out.
        """
        means, squares = moments[:, 0], moments[:, 1]
        with np.errstate(invalid="ignore"):
            finite = np.isfinite(squares).all(axis=1) & (np.abs(means) < _LARGEST_MEAN).all(axis=1)
        usable = finite & (seen > 0)
        if not usable.any():
            return
        counts, means, squares = seen[usable, None].astype(np.float64), means[usable], squares[usable]
        count, first = float(counts.sum()), means[0]
        # About a mean that was seen, not about 0: with large offsets, sums about 0 lose the deviations.
        mean = first + (counts * (means - first)).sum(axis=0) / count
        self._merge(count, mean, squares.sum(axis=0) + (counts * (means - mean) ** 2).sum(axis=0))

    def _merge(self, count: float, mean: Array, squares: Array) -> None:
        both, delta = self.count + count, mean - self.mean
        self.mean = self.mean + delta * (count / both)
        self.squares = self.squares + squares + delta**2 * (self.count * count / both)
        self.count = both
