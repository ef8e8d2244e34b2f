"""When a run of :func:`escalade.evolve` stops, what it tests and whom it tells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from escalade.errors import InputError
from escalade.training.evolve_records import View

OnTest = Callable[[Any, float], bool | None]
"""Called as ``on_test(module, score)``; True stops the run."""


@dataclass(frozen=True)
class Plan:
    """When to stop, when to test, whom to tell; see :func:`escalade.evolve`."""

    generations: int
    seconds: float | None
    goal: float | None
    goal_patience: int
    test_every: int
    on_test: OnTest | None
    callback: Callable[[View], bool | None] | None
    batch: int
    verbose: int
    save_path: Path | None
    resume: bool

    def __post_init__(self) -> None:
        """Refuse what makes no sense, by name."""
        if self.generations < 0:
            raise InputError(f"generations {self.generations} must not be negative")
        if self.seconds is not None and not self.seconds > 0:
            raise InputError(f"seconds {self.seconds} must be above 0")
        if self.goal is not None and math.isnan(self.goal):
            raise InputError("goal must be a number, not NaN")
        if self.goal_patience < 1:
            raise InputError(f"goal_patience {self.goal_patience} must be at least 1")
        if self.test_every < 0:
            raise InputError(f"test_every {self.test_every} must not be negative")
        if self.goal is not None and self.test_every == 0:
            raise InputError("goal is judged by tests of the unperturbed module: set test_every to 1 or more")
        if self.verbose < 0:
            raise InputError(f"verbose {self.verbose} must be True, False or a number of generations")
        if self.resume and self.save_path is None:
            raise InputError("resume=True goes on from save_path: give it as well")
