"""What a run says to the person who watches it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from types import FrameType

import numpy as np
from numpy.typing import NDArray

from escalade.errors import shortened
from escalade.recorders import Recorder


class Notes:
    """Gives notes to the recorders; of a kind that repeats itself only the 1st, 10th, 100th and so on.

    ``counts`` holds how often each kind came up; it belongs to the run's progress. ``subject`` is what is
    trained: a policy, or a module. With ``warn``, what
    the user must not miss is a Python warning as well: for library calls that print nothing.
    """

    def __init__(
        self, recorders: Sequence[Recorder], counts: dict[str, int], subject: str, *, warn: bool = False
    ) -> None:
        self.recorders = recorders
        self.counts = counts
        self.subject = subject
        self.warn = warn

    def say(self, text: str, kind: str | None = None) -> None:
        """Give a note; ``kind`` names what may repeat itself."""
        if kind is not None:
            count = self.counts[kind] = self.counts.get(kind, 0) + 1
            if count not in (1, 10, 100, 1000, 10_000):
                return
            text += f" ({count} times so far)" if count > 1 else ""
        for recorder in self.recorders:
            recorder.note(shortened(text))

    def say_once(self, text: str, kind: str) -> None:
        """Give a note, unless the run has given one of this kind."""
        if kind not in self.counts:
            self.say(text, kind)

    def say_nonfinite(self, text: str) -> None:
        """Say that a return was not a usable number."""
        if self.warn and "nonfinite" not in self.counts:
            warnings.warn(text, RuntimeWarning, stacklevel=_frames_of_ours())
        self.say(text, kind="nonfinite")

    def explain_rank(self, generation: int, fitness: NDArray[np.float64], evaluation: float | None) -> None:
        """Say so when the members' ``fitness`` holds no gradient; larger is better in both.

        Without an ``evaluation`` that can be compared with the members, only whether they tie is looked at.
        """
        members = len(fitness)
        if (fitness == fitness[0]).all():
            self.say(
                f"generation {generation}: all members have the same fitness, so there is nothing to learn "
                f"from: a larger sigma{' or longer episodes' if self.subject == 'policy' else ''} may tell "
                "them apart",
                kind="equal",
            )
        elif evaluation is not None and members > 2 and (fitness < evaluation).all():
            self.say(
                f"generation {generation}: the unperturbed {self.subject} beats every member (rank 1 of "
                f"{members + 1}): noise only harms it, so the gradient is uninformative; a smaller sigma may "
                "help",
                kind="rank",
            )


def _frames_of_ours() -> int:
    """The ``stacklevel`` of a warning that shall name the line that called the library."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("escalade."):
        frame, level = frame.f_back, level + 1
    return level
