"""Transforms of rewards in training. Evaluations, and every reported return, are of the reward itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RewardTransform:
    """From each step's reward to what a member's fitness sums: take ``shift`` off, then bound by ``floor``.

    ARS (Mania et al. 2018, arXiv 1803.07055) calls the first ``shift``.
    """

    shift: float = 0.0
    floor: float | None = None

    def __call__(self, rewards: Array) -> Array:
        """Transformed rewards, shape (n,), in memory of their own."""
        changed = np.asarray(rewards, np.float64) - self.shift
        return changed if self.floor is None else np.maximum(changed, self.floor)
