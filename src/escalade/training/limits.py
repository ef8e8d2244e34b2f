"""When a run stops."""

from __future__ import annotations

import math
from dataclasses import dataclass

from escalade.errors import InputError
from escalade.training.progress import Progress


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
    """What the unperturbed policy's evaluation must reach: from below, or from above when minimising."""
    target_patience: int = 1
    """Evaluations in a row that must reach it."""

    def __post_init__(self) -> None:
        if self.generations is not None and self.generations < 0:
            raise InputError(f"generations {self.generations} must not be negative")
        if self.seconds is not None and not self.seconds > 0:
            raise InputError(f"seconds {self.seconds} must be above 0")
        if self.target_return is not None and math.isnan(self.target_return):
            raise InputError("target_return must be a number, not NaN")
        if self.target_patience < 1:
            raise InputError(f"target_patience {self.target_patience} must be at least 1")

    def reached(self, progress: Progress) -> str | None:
        """The name of the limit that ``progress`` has reached, if any."""
        if progress.solved and self.target_return is not None:
            return "solved"
        if self.generations is not None and progress.generation >= self.generations:
            return "generations"
        if self.env_steps is not None and progress.total.env_steps >= self.env_steps:
            return "env_steps"
        if self.seconds is not None and progress.total.seconds >= self.seconds:
            return "seconds"
        return None
