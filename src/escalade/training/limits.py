"""When a run stops."""

from __future__ import annotations

from dataclasses import dataclass

from escalade.errors import InputError
from escalade.support.numbers import real_number, whole_number
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
        if self.generations is not None:
            whole_number(self.generations, "generations", 0)
        if self.seconds is not None and not real_number(self.seconds, "seconds") > 0:
            raise InputError(f"seconds {self.seconds} must be above 0")
        if self.target_return is not None:
            real_number(self.target_return, "target_return")
        whole_number(self.target_patience, "target_patience", 1)

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
