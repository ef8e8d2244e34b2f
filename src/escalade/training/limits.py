"""The limits at which a run stops."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from escalade.errors import InputError
from escalade.support.numbers import real_number, whole_number
from escalade.training.progress import Progress

_LEAST_SECONDS = 2.0  # that a generation may take beyond the budget of seconds
_SHARE = 0.1  # of the budget, likewise
_EVALUATION_SECONDS = 10.0  # that the last evaluation may take, at least


class TimeUp(Exception):
    """The budget of seconds ended inside a generation or an evaluation."""


class Deadline:
    """Raises :class:`TimeUp` when it is called after its time; the time begins with the first call."""

    def __init__(self) -> None:
        self.set(None)

    def set(self, seconds: float | None) -> None:
        """Give what comes now so many seconds; None: as long as it takes."""
        self._seconds, self._at = seconds, math.inf if seconds is None else None

    def __call__(self) -> None:
        now = time.monotonic()
        if self._at is None:
            self._at = now + (self._seconds or 0.0)
        elif now >= self._at:
            raise TimeUp


@dataclass(frozen=True)
class Limits:
    """Budgets and the target; None where there is none.

    Raises:
        InputError: a limit is impossible; the message names it.
    """

    generations: int | None = None
    env_steps: int | None = None
    seconds: float | None = None
    target_return: float | None = None
    """The return that the unperturbed policy's evaluation must reach: from above when minimising."""
    target_patience: int = 1
    """Evaluations in a row that must reach it."""

    def __post_init__(self) -> None:
        if self.generations is not None:
            whole_number(self.generations, "generations", 0)
        if self.seconds is not None and not 0 < real_number(self.seconds, "seconds") < math.inf:
            raise InputError(f"seconds {self.seconds} must be above 0 and finite: None is no limit")
        if self.target_return is not None:
            real_number(self.target_return, "target_return")
        whole_number(self.target_patience, "target_patience", 1)

    def seconds_for_generation(self, progress: Progress) -> float | None:
        """Seconds after which a generation that has not ended is given up; None where there is no budget.

        What is left of the budget, and a little more: what ends soon after it need not be lost.
        """
        if self.seconds is None:
            return None
        return max(0.0, self.seconds - progress.total.seconds) + self._overtime(_LEAST_SECONDS)

    def seconds_for_last_evaluation(self, progress: Progress, *, cut: bool) -> float | None:
        """Seconds after which the evaluation at the end is given up; None where there is no budget.

        ``cut`` where the last generation was given up.
        """
        if self.seconds is None:
            return None
        if cut:  # episodes that do not end: those of the evaluation may be no better
            return self._overtime(_LEAST_SECONDS)
        left = max(0.0, self.seconds - progress.total.seconds)
        return left + self._overtime(_EVALUATION_SECONDS)

    def _overtime(self, least: float) -> float:
        return max(least, _SHARE * (self.seconds or 0.0))

    def reached(self, progress: Progress) -> str | None:
        """The name of the limit that ``progress`` has reached, if any."""
        if progress.solved:
            return "solved"
        if self.generations is not None and progress.generation >= self.generations:
            return "generations"
        if self.env_steps is not None and progress.total.env_steps >= self.env_steps:
            return "env_steps"
        if self.seconds is not None and progress.total.seconds >= self.seconds:
            return "seconds"
        return None
