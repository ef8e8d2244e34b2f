"""Values of options of an environment, which are read before Gymnasium is wanted."""

from __future__ import annotations

from escalade.envs import BOUNDINGS
from escalade.errors import InputError
from escalade.support.registry import check_named

_MOST_STEPS = 2**31 - 1  # that simulators can hold


def check_action_map(text: str) -> None:
    """Refuse an action map that has an unknown name in it.

    Raises:
        InputError: it has one.
    """
    for name in text.split(","):
        check_named("action_map", name, BOUNDINGS)


class SkippedFrames(str):
    """The text of a frame skip: steps for which an action is repeated, ``4``; or ``4:max``, which also pools.

    Raises:
        InputError: it is neither.
    """

    steps: int
    pools: bool
    """True if an observation is the maximum of the last two of these steps (Mnih et al. 2015)."""

    def __new__(cls, text: str | int) -> SkippedFrames:
        made = super().__new__(cls, text)
        steps, colon, how = made.partition(":")
        made.steps = int(steps) if steps.isascii() and steps.isdecimal() and len(steps) < 11 else 0
        made.pools = bool(colon)
        if not 1 + made.pools <= made.steps <= _MOST_STEPS or (colon and how != "max"):
            raise InputError(f"`frame_skip` {text!r} must be a number of steps, such as 4, or 4:max")
        return made
