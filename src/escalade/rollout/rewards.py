"""Transforms of rewards in training. Evaluations, and every reported return, are of the reward itself."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from escalade.errors import InputError

Array = NDArray[np.float64]

FORMS = "info=NAME, shift=X, floor=X, or several of them with commas between"


class Reward(str):
    """The text of a transform, such as ``shift=5,floor=0``, and the transform.

    From each step's reward to what a member's fitness sums: take ``shift`` off, then bound by ``floor``.
    ARS (Mania et al. 2018, arXiv 1803.07055) calls the first ``shift``.

    Raises:
        InputError: it is no such text.
    """

    info: str | None
    """The entry of a step's info that is taken for the reward."""
    shift: float
    floor: float | None

    def __new__(cls, text: str) -> Reward:
        made = super().__new__(cls, text)
        given = dict(part.strip().partition("=")[::2] for part in made.split(","))
        try:
            made.info = given.pop("info", None)
            made.shift = float(given.pop("shift", 0.0))
            made.floor = float(given.pop("floor")) if "floor" in given else None
            if given or made.info == "" or not math.isfinite(made.shift + (made.floor or 0.0)):
                raise ValueError
        except ValueError:
            raise InputError(f"`reward` {text!r} must be {FORMS}") from None
        return made

    def __call__(self, rewards: Array) -> Array:
        """Transformed rewards, shape (n,), in memory of their own."""
        changed = np.asarray(rewards, np.float64) - self.shift
        return changed if self.floor is None else np.maximum(changed, self.floor)
