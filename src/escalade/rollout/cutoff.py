"""The option ``cutoff``: a cap on the steps of an episode, which may change during the run.

A generation is a function of the cap, so the cap is stored in the checkpoint. It applies to members only:
evaluations run to the environment's own end.
"""

from __future__ import annotations

import math

from escalade.errors import InputError

_LARGEST = 1e9  # number in a cutoff, so that products with steps stay whole numbers
FORMS = "STEPS, mean:FACTOR, adaptive:START,SHARE,RATIO or along:STEPS"
START = 1000
"""First cap if the environment has no step limit: at least as long as most registered limits."""
MOVING = f"adaptive:{START},0.5,1.5"
UNSET = f"no cap; {MOVING} if the environment has no step limit"
_BOUNDS = (
    f"STEPS and START are whole numbers from 1 to {_LARGEST:,.0f}, FACTOR and RATIO above 1, "
    "SHARE above 0 and at most 1"
)


class Cutoff(str):
    """A parsed cutoff, such as ``200``, ``mean:2`` or ``along:300``.

    A number of steps is a fixed cap. ``mean:FACTOR`` is FACTOR times the mean length of the last
    generation's episodes; ``mean:2`` is ``variable-ep-len`` in pytorch-es. ``adaptive:START,SHARE,RATIO``
    (Salimans et al. 2017) multiplies the cap by RATIO when SHARE of the episodes reach it. ``along:STEPS``
    is a fixed cap on episodes that start in states of an episode of the center; each pair of members has a
    state of its own, so the strategy gets their returns minus their mean.

    Raises:
        InputError: The text has none of these forms, or a number is out of range.
    """

    _kind: str
    _numbers: list[float]
    start: int | None
    """The first generation's cap, or None if it has none."""

    def __new__(cls, text: str | int) -> Cutoff:
        made = super().__new__(cls, text)
        made._kind, _, rest = made.rpartition(":")
        try:
            made._numbers = [float(number) for number in rest.split(",")]
        except ValueError:
            made._numbers = []
        match made._kind, made._numbers:
            case "" | "along", [start]:
                valid = _is_cap(start)
            case "mean", [factor]:
                valid = 1 < factor <= _LARGEST
            case "adaptive", [start, share, ratio]:
                valid = _is_cap(start) and 0 < share <= 1 < ratio <= _LARGEST
            case _:
                valid = False
        if not valid:
            raise InputError(f"`cutoff` {text!r} must be {FORMS}: {_BOUNDS}")
        made.start = None if made._kind == "mean" else int(made._numbers[0])
        return made

    @property
    def moves(self) -> bool:
        """True if the cap or the states in which episodes start may differ between generations."""
        return self._kind != ""

    @property
    def along(self) -> bool:
        """True if members' episodes start in states of the center's episode."""
        return self._kind == "along"

    def after(self, cap: int | None, lengths: list[int]) -> int | None:
        """Return the next generation's cap, from this generation's cap and its episodes' lengths in steps."""
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
