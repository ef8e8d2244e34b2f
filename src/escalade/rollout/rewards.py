"""The option ``reward``: transforms of the reward in training.

Evaluations and all reported returns use the environment's own reward.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from escalade.errors import InputError

Array = NDArray[np.float64]

FORMS = "info=NAME, shift=X or floor=X, or several of these separated by commas"


class Reward(str):
    """A parsed transform of the reward, such as ``shift=5,floor=0``.

    A member's fitness sums the transformed rewards: subtract ``shift``, then bound from below by ``floor``.
    ``shift`` has the name that it has in ARS (Mania et al. 2018, arXiv 1803.07055).

    Raises:
        InputError: The text does not have this form.
    """

    info: str | None
    """Key of a step's info whose value replaces the reward."""
    shift: float
    floor: float | None

    def __new__(cls, text: str) -> Reward:
        made = super().__new__(cls, text)
        parts = dict(part.strip().partition("=")[::2] for part in made.split(","))
        try:
            made.info = parts.pop("info", None)
            made.shift = float(parts.pop("shift", 0.0))
            made.floor = float(parts.pop("floor")) if "floor" in parts else None
            if parts or made.info == "" or not math.isfinite(made.shift + (made.floor or 0.0)):
                raise ValueError
        except ValueError:
            raise InputError(f"`reward` {text!r} must be {FORMS}") from None
        return made

    def __call__(self, rewards: Array) -> Array:
        """Return the transformed rewards, shape (n,), in new memory."""
        changed = np.asarray(rewards, np.float64) - self.shift
        return changed if self.floor is None else np.maximum(changed, self.floor)
