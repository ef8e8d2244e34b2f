"""The cutoff of an episode: a cap on its steps that may move with the run.

A cap is part of what a generation is a function of, so it is kept in the checkpoint. It is the
population's only: evaluations run to the environment's own end.
"""

from __future__ import annotations

import math

from escalade.errors import InputError

_LARGEST = 1e9  # of the numbers in a cut-off; products with steps then stay whole numbers
FORMS = "STEPS, mean:FACTOR, adaptive:START,SHARE,RATIO or along:STEPS"
START = 1000
"""First cap if the environment has no limit of steps: no shorter than most registered limits."""
MOVING = f"adaptive:{START},0.5,1.5"
UNSET = f"no cap; {MOVING} if the environment has no limit of steps"
_BOUNDS = (
    f"STEPS and START are whole numbers from 1 to {_LARGEST:,.0f}, FACTOR and RATIO above 1, "
    "SHARE above 0 and at most 1"
)


class Cutoff(str):
    """The text of a cut-off, and the rule that it names, such as ``200``, ``mean:2`` or ``along:300``.

    A number of steps stays as it is. ``mean:FACTOR`` is that many times the mean length of the last
    generation's episodes; pytorch-es calls twice the mean ``variable-ep-len``. Salimans et al. 2017's
    ``adaptive:START,SHARE,RATIO`` multiplies the cap by RATIO when SHARE of the episodes hit it.
    ``along:STEPS`` is a fixed cap on episodes that begin in states of an episode of the centre.

    Raises:
        InputError: it is none of these, or holds an impossible number.
    """

    _kind: str
    _numbers: list[float]
    start: int | None
    """The first generation's cap; None if that has none."""

    def __new__(cls, text: str | int) -> Cutoff:
        made = super().__new__(cls, text)
        made._kind, _, rest = made.rpartition(":")
        try:
            made._numbers = [float(number) for number in rest.split(",")]
        except ValueError:
            made._numbers = []
        match made._kind, made._numbers:
            case "" | "along", [start]:
                right = _is_cap(start)
            case "mean", [factor]:
                right = 1 < factor <= _LARGEST
            case "adaptive", [start, share, ratio]:
                right = _is_cap(start) and 0 < share <= 1 < ratio <= _LARGEST
            case _:
                right = False
        if not right:
            raise InputError(f"`cutoff` {text!r} must be {FORMS}: {_BOUNDS}")
        made.start = None if made._kind == "mean" else int(made._numbers[0])
        return made

    @property
    def moves(self) -> bool:
        """True if generations may have different caps, or begin their episodes elsewhere."""
        return self._kind != ""

    @property
    def along(self) -> bool:
        """True if members' episodes begin along the centre's."""
        return self._kind == "along"

    def after(self, cap: int | None, lengths: list[int]) -> int | None:
        """The next generation's cap, of a generation's own and the lengths of its episodes in steps."""
        if self._kind == "mean":
            return max(1, math.ceil(self._numbers[0] * sum(lengths) / len(lengths)))
        if self._kind == "adaptive":
            _, share, ratio = self._numbers
            limit = self.start if cap is None else cap
            assert limit is not None
            hit = sum(length >= limit for length in lengths)
            return math.ceil(limit * ratio) if hit >= share * len(lengths) else limit
        return cap


def _is_cap(number: float) -> bool:
    return 1 <= number <= _LARGEST and number.is_integer()
