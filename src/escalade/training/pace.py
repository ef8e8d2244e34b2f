"""Lines about a slow first generation, before and after it ends."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from escalade.recorders.goals import duration
from escalade.training.limits import Deadline, Limits
from escalade.training.progress import Progress

_SILENT_SECONDS = 10.0
_FACTOR = 4.0  # between the silence after which a line is printed and that of the next
_FEW = 20  # generations in which little is learnt


class Pace(Deadline):
    """Deadline of generations that also reports a slow first one.

    Later generations need no such lines: their rows show how long one takes.

    Args:
        limits: of the run.
        say: prints a note of the run.
    """

    def __init__(self, limits: Limits, say: Callable[[str], None]) -> None:
        super().__init__()
        self._limits, self._say = limits, say
        self._began: float | None = None
        self._next = _SILENT_SECONDS

    def __call__(self) -> None:
        super().__call__()
        now = time.monotonic()
        if self._began is None:
            self._began = now
        elif now - self._began >= self._next:
            self._next *= _FACTOR
            self._say(f"the first generation has been running for {duration(now - self._began)}")

    def ended(self, progress: Progress, seconds: float, *, episodes: bool) -> None:
        """Take note of a generation that took ``seconds``; tell if the budget allows few more like it.

        Args:
            progress: of the run, this generation included.
            seconds: that it took, an evaluation included.
            episodes: whether it consists of episodes.
        """
        self._next = math.inf
        budget = self._limits.seconds
        if budget is None or progress.generation != 1:
            return
        most = 1 + math.ceil(max(0.0, budget - progress.total.seconds) / seconds)
        if most < _FEW:
            shorter = ", shorter episodes (`cutoff`)" if episodes else ""
            takes = duration(seconds) if seconds >= 10 else f"{seconds:.2g} s"
            self._say(
                f"a generation takes {takes}, so `seconds={budget:g}` allows about {most} "
                f"generations: fewer members (`population`){shorter} or more `workers` make them faster"
            )
