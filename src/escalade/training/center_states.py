"""The normaliser and the last known return of each centre of a run."""

from __future__ import annotations

import copy

import numpy as np

from escalade.policies.normalizer import Normalizer
from escalade.storage.tensors import Tensors
from escalade.strategies import Strategy
from escalade.strategies.centers import Centers, best_known, of_center
from escalade.strategies.shaping import usable_number

WORTH = "centers.worth"
"""Each centre's mean return when it was known last, shape (centers,), among a checkpoint's tensors."""


class CenterStates:
    """A normaliser for each centre, and its mean return when it was known last; most runs have one centre."""

    def __init__(self, first: Normalizer, centers: int) -> None:
        self.normalizers = [first, *(copy.deepcopy(first) for _ in range(centers - 1))]
        self.worth = np.full(centers, np.nan)
        self.drawn = 0

    @property
    def count(self) -> int:
        """The number of centres."""
        return len(self.normalizers)

    @property
    def normalizer(self) -> Normalizer:
        """That of the centre that is drawn."""
        return self.normalizers[self.drawn]

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
        tensors: Tensors = {WORTH: self.worth}
        for number, normalizer in enumerate(self.normalizers):
            tensors |= normalizer.tensors(f"normalizer.{number}.")
        return tensors

    def load(self, tensors: Tensors, drawn: int) -> bool:
        """Take over what :meth:`tensors` gave; False, and nothing is, where observations had another size."""
        several = self.count > 1
        found = [of_center(tensors, number) if several else tensors for number in range(self.count)]
        if any(of["normalizer.mean"].shape != self.normalizer.mean.shape for of in found):
            return False
        self.normalizers = [Normalizer.restored(of) for of in found]
        self.worth = tensors[WORTH].copy() if several else self.worth
        self.drawn = drawn
        return True
