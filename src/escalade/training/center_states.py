"""Normalisers, caps and known returns of a run's centres, and the best policy so far."""

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
"""Each centre's mean return when it was known last, shape (centers,), among a checkpoint's tensors."""
CAPS = "centers.caps"
"""The cap on the steps of the episodes of each centre's members, shape (centers,); infinite for none."""


class CenterStates:
    """A normaliser, a cap and the last known mean return for each centre; most runs have one."""

    def __init__(self, first: Normalizer, centers: int, cap: int | None = None) -> None:
        self.normalizers = [first, *(copy.deepcopy(first) for _ in range(centers - 1))]
        self.caps = [cap] * centers
        self.worth = np.full(centers, np.nan)
        self.drawn = 0

    @property
    def count(self) -> int:
        """The number of centres."""
        return len(self.normalizers)

    @property
    def normalizer(self) -> Normalizer:
        """Normaliser of the centre that is drawn."""
        return self.normalizers[self.drawn]

    @property
    def cap(self) -> int | None:
        """Cap on the episodes of the drawn centre's members; None for none."""
        return self.caps[self.drawn]

    def draw(self, strategy: Strategy, number: int) -> None:
        """Have this centre be the one that is measured and learns."""
        self.drawn = number
        if isinstance(strategy, Centers):
            strategy.drawn = number

    def draw_best(self, strategy: Strategy) -> None:
        """Draw the centre of the largest mean return that is known."""
        self.draw(strategy, best_known(self.worth))

    def showed(self, number: int, mean: float) -> None:
        """Keep the mean return of a centre's latest episodes, unless one of them had none."""
        if usable_number(mean):
            self.worth[number] = mean

    def tensors(self) -> Tensors:
        """State to save; that of one centre under the names that a normaliser gives."""
        if self.count == 1:
            return self.normalizer.tensors()
        caps = [np.inf if cap is None else cap for cap in self.caps]
        tensors: Tensors = {WORTH: self.worth, CAPS: np.array(caps, dtype=np.float64)}
        for number, normalizer in enumerate(self.normalizers):
            tensors |= normalizer.tensors(f"normalizer.{number}.")
        return tensors

    def load(self, tensors: Tensors, drawn: int, cap: int | None = None) -> None:
        """Take over what :meth:`tensors` gave; ``drawn`` and its ``cap`` are kept beside the tensors."""
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
"""Centre, shape (dimension,), and the normaliser as it was then."""

_PREFIX = "best."


def best_tensors(best: Best | None) -> Tensors:
    """Return what a checkpoint keeps of it; nothing where there is none yet."""
    if best is None:
        return {}
    center, normalizer = best
    return {f"{_PREFIX}center": center, **normalizer.tensors(_PREFIX)}


def best_of(tensors: Tensors) -> Best | None:
    """Read what :func:`best_tensors` gave, in a checkpoint."""
    center = tensors.get(f"{_PREFIX}center")
    return None if center is None else (center.copy(), Normalizer.restored(tensors, _PREFIX))
