"""Normalizers, caps and mean returns of a run's centers, and the best policy so far."""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray

from escalade.policies.normalizer import Normalizer
from escalade.storage.tensors import Tensors
from escalade.strategies import Strategy
from escalade.strategies.centers import Centers, best_known
from escalade.strategies.shaping import usable_number

WORTH = "centers.worth"
"""Name in a checkpoint of each center's last known mean return, shape (centers,)."""
CAPS = "centers.caps"
"""Name in a checkpoint of the step cap of each center's members, shape (centers,), infinite for no cap."""


class CenterStates:
    """Normalizer, cap and last known mean return of each center. Most runs have one center."""

    def __init__(self, first: Normalizer, centers: int, cap: int | None = None) -> None:
        self.normalizers = [first, *(copy.deepcopy(first) for _ in range(centers - 1))]
        self.caps = [cap] * centers
        self.worth = np.full(centers, np.nan)
        self.drawn = 0

    @property
    def count(self) -> int:
        """Number of centers."""
        return len(self.normalizers)

    @property
    def normalizer(self) -> Normalizer:
        """Normalizer of the drawn center."""
        return self.normalizers[self.drawn]

    @property
    def cap(self) -> int | None:
        """Step cap of the drawn center's members, or None for no cap."""
        return self.caps[self.drawn]

    def draw(self, strategy: Strategy, number: int) -> None:
        """Make this center the one that is measured and updated."""
        self.drawn = number
        if isinstance(strategy, Centers):
            strategy.drawn = number

    def draw_best(self, strategy: Strategy) -> None:
        """Draw the center with the largest known mean return."""
        self.draw(strategy, best_known(self.worth))

    def record_mean(self, number: int, mean: float) -> None:
        """Record the mean return of a center's latest episodes, unless it is not usable."""
        if usable_number(mean):
            self.worth[number] = mean

    def tensors(self) -> Tensors:
        """Return the state to save. A single center's has the names of its normalizer."""
        if self.count == 1:
            return self.normalizer.tensors()
        caps = [np.inf if cap is None else cap for cap in self.caps]
        tensors: Tensors = {WORTH: self.worth, CAPS: np.array(caps, dtype=np.float64)}
        for number, normalizer in enumerate(self.normalizers):
            tensors |= normalizer.tensors(f"normalizer.{number}.")
        return tensors

    def load(self, tensors: Tensors, drawn: int, cap: int | None = None) -> None:
        """Restore the state of :meth:`tensors`. ``drawn`` and its ``cap`` are stored separately."""
        self.caps = [cap]
        if self.count == 1:
            self.normalizers = [Normalizer.restored(tensors)]
        else:
            prefixes = (f"normalizer.{number}." for number in range(self.count))
            self.normalizers = [Normalizer.restored(tensors, prefix) for prefix in prefixes]
            self.worth = tensors[WORTH].copy()
            self.caps = [int(steps) if np.isfinite(steps) else None for steps in tensors[CAPS]]
        self.drawn = drawn


Best = tuple[NDArray[np.float32], Normalizer]
"""Center, shape (dimension,), and a copy of its normalizer at that time."""

_PREFIX = "best."


def best_tensors(best: Best | None) -> Tensors:
    """Return the best policy's tensors for a checkpoint, or an empty dict before the first."""
    if best is None:
        return {}
    center, normalizer = best
    return {f"{_PREFIX}center": center, **normalizer.tensors(_PREFIX)}


def best_of(tensors: Tensors) -> Best | None:
    """Return the best policy from a checkpoint's tensors, or None if it has none."""
    center = tensors.get(f"{_PREFIX}center")
    return None if center is None else (center.copy(), Normalizer.restored(tensors, _PREFIX))
