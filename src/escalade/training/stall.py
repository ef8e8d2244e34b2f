"""What follows when evaluations stop getting better: larger generations, or a new beginning."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal


@dataclass
class Stall:
    """How long an attempt has gone without a better evaluation, and how large generations have become.

    A new attempt keeps the size.
    """

    best: float | None = None
    """The best evaluation of this attempt; None before the first."""
    waited: int = 0
    """Evaluations since the best one."""
    fold: int = 1
    """How many times the population a generation has."""

    def evaluated(
        self, mean: float, grow_after: int | None, restart_after: int | None
    ) -> Literal["grow", "restart"] | None:
        """Count an evaluation; what is to follow.

        Args:
            mean: its mean return.
            grow_after: evaluations without a better one after which generations are to grow, again and again.
            restart_after: those after which a new attempt is to begin; None, as above, for never.
        """
        if math.isfinite(mean) and (self.best is None or mean > self.best):
            self.best, self.waited = mean, 0
            return None
        self.waited += 1
        if restart_after is not None and self.waited >= restart_after:
            self.best, self.waited = None, 0
            return "restart"
        return "grow" if grow_after is not None and self.waited % grow_after == 0 else None
