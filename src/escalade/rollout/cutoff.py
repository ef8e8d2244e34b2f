"""The cutoff of an episode: a cap on its steps that may move with the run.

A cap is part of what a generation is a function of, so it is kept in the checkpoint. It is the
population's only: evaluations run to the environment's own end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from escalade.errors import InputError

_LARGEST = 1e9  # of the numbers in a cut-off; products with steps then stay whole numbers
FORMS = "STEPS, mean:FACTOR or adaptive:START,SHARE,RATIO"
START = 1000
"""First cap if the environment has no limit of steps: no shorter than most registered limits."""
MOVING = f"adaptive:{START},0.5,1.5"
UNSET = f"no cap; {MOVING} if the environment has no limit of steps"
_BOUNDS = (
    f"STEPS and START are whole numbers from 1 to {_LARGEST:,.0f}, FACTOR and RATIO above 1, "
    "SHARE above 0 and at most 1"
)


@dataclass(frozen=True)
class Fixed:
    """Always ``start`` steps, or none."""

    start: int | None

    def after(self, cap: int | None, lengths: list[int]) -> int | None:
        return cap


@dataclass(frozen=True)
class TimesMean:
    """``factor`` times the mean length of the last generation's episodes.

    pytorch-es calls twice the mean ``variable-ep-len``. The first generation has no cap.
    """

    factor: float
    start: int | None = None

    def after(self, cap: int | None, lengths: list[int]) -> int | None:
        return max(1, math.ceil(self.factor * sum(lengths) / len(lengths)))


@dataclass(frozen=True)
class Adaptive:
    """Starts at ``start`` steps; when ``share`` of the episodes hit the cap, multiplies it by ``ratio``.

    The ``adaptive:START,THRESHOLD,RATIO`` of Salimans et al. 2017's code.
    """

    start: int
    share: float
    ratio: float

    def after(self, cap: int | None, lengths: list[int]) -> int | None:
        limit = self.start if cap is None else cap
        hit = sum(length >= limit for length in lengths)
        return math.ceil(limit * self.ratio) if hit >= self.share * len(lengths) else limit


Cutoff = Fixed | TimesMean | Adaptive
"""The rule that moves the cap: ``start`` is the first generation's, and ``after`` gives the next one's from a
generation's own and the lengths of its episodes in steps."""


def parse(text: str | int | None) -> Cutoff:
    """Read a cut-off: a number of steps, ``mean:2``, ``adaptive:100,0.5,1.5``, or None for none.

    Raises:
        InputError: it is none of these, or holds an impossible number.
    """
    if text is None:
        return Fixed(None)
    kind, _, rest = str(text).partition(":")
    try:
        numbers = [float(number) for number in rest.split(",")] if rest else []
        if not all(abs(number) <= _LARGEST for number in numbers):
            raise ValueError
        if kind == "mean" and len(numbers) == 1 and numbers[0] > 1:
            return TimesMean(numbers[0])
        if kind == "adaptive" and len(numbers) == 3:
            start, share, ratio = numbers
            if start >= 1 and start == int(start) and 0 < share <= 1 and ratio > 1:
                return Adaptive(int(start), share, ratio)
        if not rest and 1 <= int(kind) <= _LARGEST:
            return Fixed(int(kind))
    except ValueError:
        pass
    raise InputError(f"`cutoff` {text!r} must be {FORMS}: {_BOUNDS}")
