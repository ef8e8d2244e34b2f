"""Running moments of the observations, and the normalisation they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CLIP = 5.0
"""Normalised observations are clipped to [-CLIP, CLIP] (Salimans et al. 2017's code does the same)."""

_SMALLEST_STD = 1e-3


@dataclass(frozen=True)
class Normalization:
    """A normaliser as it stands during one generation: ``clip((x - mean) * scale)``, shape (size,)
    each; ``scale`` is one over the standard deviation.
    """

    mean: Array
    scale: Array

    def apply(self, observations: NDArray[np.floating]) -> NDArray[np.float32]:
        """Normalise observations, shape (..., size)."""
        return np.clip((observations - self.mean) * self.scale, -CLIP, CLIP).astype(np.float32)


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
    def restored(cls, tensors: Mapping[str, NDArray[Any]]) -> Normalizer:
        """The normaliser whose :meth:`tensors` these are; others beside them are left alone."""
        normalizer = cls(len(tensors["normalizer.mean"]))
        normalizer.count = float(tensors["normalizer.count"][0])
        normalizer.mean = tensors["normalizer.mean"].copy()
        normalizer.squares = tensors["normalizer.squares"].copy()
        return normalizer

    def tensors(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint keeps of it."""
        return {
            "normalizer.count": np.array([self.count]),
            "normalizer.mean": self.mean,
            "normalizer.squares": self.squares,
        }

    def freeze(self) -> Normalization:
        """What a generation sees. Before any observation, that is no change at all."""
        if self.count == 0:
            return Normalization(self.mean.copy(), np.ones_like(self.mean))
        deviation = np.sqrt(self.squares / self.count)
        # A dimension that has not moved keeps its scale: dividing by next to nothing would turn
        # its first movement into an explosion.
        return Normalization(self.mean.copy(), 1.0 / np.where(deviation > _SMALLEST_STD, deviation, 1.0))

    def merge_episodes(self, lengths: NDArray[np.int64], shift: Array, moments: Array) -> None:
        """Add episodes of ``lengths`` (n,) with ``moments`` (n, 2, size), in the order they are in.

        The moments are the sums of (x - shift) and of its square. In member order, because the last
        bit of a sum depends on it.
        """
        for length, (total, squares) in zip(lengths.tolist(), moments, strict=True):
            self.merge(length, shift, total, squares)

    def merge(self, count: float, shift: Array, total: Array, squares: Array) -> None:
        """Add ``count`` observations, given the sums of (x - shift) and of its square."""
        if count == 0 or not (np.isfinite(total).all() and np.isfinite(squares).all()):
            return  # a diverged episode must not poison the moments
        offset = total / count
        mean, deviations = shift + offset, np.maximum(squares - total * offset, 0.0)
        both, delta = self.count + count, mean - self.mean
        self.mean = self.mean + delta * (count / both)
        self.squares = self.squares + deviations + delta**2 * (self.count * count / both)
        self.count = both
