"""Transforms of rewards in training. Evaluations, and every reported return, are of the reward itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RewardTransform:
    """From each step's reward to what a member's fitness sums.

    In this order: take ``shift`` off, bound to ``floor`` and ``ceiling``, then either the sign alone or
    ``scale`` times the number. ARS (Mania et al. 2018, arXiv 1803.07055) calls the first ``shift``.
    """

    shift: float = 0.0
    floor: float | None = None
    ceiling: float | None = None
    scale: float = 1.0
    sign: bool = False

    def __call__(self, rewards: Array) -> Array:
        """Transformed rewards, shape (n,), in memory of their own."""
        changed = np.asarray(rewards, np.float64) - self.shift
        if self.floor is not None:
            changed = np.maximum(changed, self.floor)
        if self.ceiling is not None:
            changed = np.minimum(changed, self.ceiling)
        return np.sign(changed) if self.sign else changed * self.scale
