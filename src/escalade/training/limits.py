"""The limits of a run, its pace, and the test that it meets its target."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from escalade.errors import InputError
from escalade.recorders.goals import duration
from escalade.storage.tensors import State
from escalade.strategies.shaping import usable
from escalade.support.numbers import number, real_number, whole_number
from escalade.training.objective import Array, Evaluation
from escalade.training.progress import Progress

_LEAST_SECONDS = 2.0  # a generation may exceed the time limit by this,
_SHARE = 0.1  # or by this share of it, if that is more
_EVALUATION_SECONDS = 10.0  # the same for the last evaluation


class TimeUp(Exception):
    """The time limit was reached during a generation or an evaluation."""


class Deadline:
    """Raises :class:`TimeUp` if called after the deadline. The time starts with the first call."""

    def __init__(self) -> None:
        self.set(None)

    def set(self, seconds: float | None) -> None:
        """Set the deadline to ``seconds`` after the next call, or to never with None."""
        self._seconds, self._at = seconds, math.inf if seconds is None else None

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Apply a deadline of ``seconds`` to the body of the ``with`` statement."""
        self.set(seconds)
        try:
            yield
        finally:
            self.set(None)

    def __call__(self) -> None:
        now = time.monotonic()
        if self._at is None:
            self._at = now + (self._seconds or 0.0)
        elif now >= self._at:
            raise TimeUp


@dataclass(frozen=True)
class Limits:
    """Limits and target of a run.

    None means no limit.

    Raises:
        InputError: A limit is out of range.
    """

    generations: int | None = None
    env_steps: int | None = None
    seconds: float | None = None
    target_return: float | None = None
    """Mean return that evaluations of the unperturbed policy must reach; from above when minimizing."""
    target_patience: int = 1
    """Number of consecutive evaluations that must reach the target."""

    def __post_init__(self) -> None:
        if self.generations is not None:
            whole_number(self.generations, "generations", 0)
        if self.seconds is not None and not 0 < real_number(self.seconds, "seconds") < math.inf:
            raise InputError(f"seconds {self.seconds} must be above 0 and finite; use None for no limit")
        if self.target_return is not None:
            real_number(self.target_return, "target_return")
        whole_number(self.target_patience, "target_patience", 1)

    @property
    def target(self) -> State:
        """The target as recorded in a checkpoint. A resumed run may have a different one."""
        return {"target_return": self.target_return, "target_patience": self.target_patience}

    def seconds_for_generation(self, progress: Progress) -> float | None:
        """Return the seconds after which a generation is abandoned, or None without a time limit.

        This is the remaining time and a little more, so that a generation that ends soon after is not lost.
        """
        if self.seconds is None:
            return None
        return self.left(progress) + self._overtime(_LEAST_SECONDS)

    def seconds_for_last_evaluation(self, progress: Progress, *, cut: bool) -> float | None:
        """Return the seconds after which the final evaluation is abandoned, or None without a time limit.

        ``cut`` is True if the last generation was abandoned.
        """
        if self.seconds is None:
            return None
        if cut:  # episodes of the evaluation may be as long as those of the abandoned generation
            return self._overtime(_LEAST_SECONDS)
        return self.left(progress) + self._overtime(_EVALUATION_SECONDS)

    def left(self, progress: Progress) -> float:
        """Return the remaining seconds of the time limit, or 0 without one."""
        return max(0.0, (self.seconds or 0.0) - progress.total.seconds)

    def _overtime(self, least: float) -> float:
        return max(least, _SHARE * (self.seconds or 0.0))

    def reached(self, progress: Progress) -> str | None:
        """Return the name of the limit that ``progress`` has reached, or None."""
        if progress.solved:
            return "solved"
        if self.generations is not None and progress.generation >= self.generations:
            return "generations"
        if self.env_steps is not None and progress.total.env_steps >= self.env_steps:
            return "env_steps"
        if self.seconds is not None and progress.total.seconds >= self.seconds:
            return "seconds"
        return None


_SILENT_SECONDS = 10.0
_FACTOR = 4.0  # by which the time to the next line grows
_FEW = 20  # generations below which a run learns little


class Pace(Deadline):
    """Deadline of generations, which also reports a slow first generation of a run or of its continuation.

    Rows show the pace of later ones.

    Args:
        limits: Limits of the run.
        note: Prints a note.
    """

    def __init__(self, limits: Limits, note: Callable[[str], None]) -> None:
        super().__init__()
        self._limits, self._note = limits, note
        self._began: float | None = None
        self._next = _SILENT_SECONDS

    def __call__(self) -> None:
        super().__call__()
        now = time.monotonic()
        if self._began is None:
            self._began = now
        elif now - self._began >= self._next:
            self._next *= _FACTOR
            self._note(f"the generation has been running for {duration(now - self._began)}")

    def ended(self, progress: Progress, seconds: float) -> None:
        """Record a generation's ``seconds``. After the first, report if the time limit allows only a few."""
        self._next = math.inf
        budget = self._limits.seconds
        if budget is None or progress.generation != 1:
            return
        most = 1 + math.ceil(self._limits.left(progress) / seconds)
        if most < _FEW:
            self._note(
                f"a generation takes {seconds:.2g} s, so `seconds={budget:g}` allows about {most} of them; "
                "fewer members (`population`), shorter episodes (`cutoff`) or more `workers` make them faster"
            )


_HARDER = 3.0  # standard errors


def meets(returns: Array, target: float, direction: float = 1.0, tries: int = 1) -> bool:
    """Return True if the mean return reaches the target by the margin of :func:`strictness`.

    The differences to the target are summed, so that returns equal to the target meet it without rounding.

    Args:
        returns: Returns of the episodes, shape (episodes,).
        target: Minimum of their mean, or its maximum with ``direction`` -1.
        direction: 1 if larger returns are better, -1 if smaller ones are.
        tries: Number of the run's confirmations, including this one.
    """
    if not usable(returns).all():  # an episode diverged
        return False
    with np.errstate(invalid="ignore"):
        beyond = direction * (returns - target)
        return bool(beyond.mean() >= strictness(tries) * beyond.std() / math.sqrt(len(beyond)))


def strictness(tries: int) -> float:
    """Return the standard errors by which the mean of a run's k-th confirmation must exceed the target.

    It is 0 for the first confirmation, the usual criterion. If mean returns are about normally distributed
    and the policy at best equals the target, a later confirmation passes by luck with probability at most
    1 / (2 k²), and any of them with at most 0.33. Rare failures need more episodes: see docs/runs.md.
    """
    return NormalDist().inv_cdf(1 - 0.5 / tries**2) if tries > 1 else 0.0


def clearly_harder(judged: Evaluation, target: float, direction: float = 1.0) -> float:
    """Return the value beyond which a new target is clearly harder than ``target``, confirmed by ``judged``.

    The distance is three standard errors: a policy exactly as good as the easier target passes the harder one
    by luck with probability 0.001.
    """
    error = judged.std / math.sqrt(len(judged.returns))
    return target + direction * _HARDER * error if math.isfinite(error) else target


def with_failures(judged: Evaluation) -> str:
    """Return a note about failed episodes in a confirmation, or an empty string without failures."""
    if not judged.failed:
        return ""
    return (
        f"{judged.failed} of the {len(judged.returns)} episodes that confirm the target failed, and count as "
        "the worst of the others"
    )


def refutation(evaluation: Evaluation, judged: Evaluation, tries: int, *, missed: bool) -> str:
    """Return a note that ``judged``, confirmation ``tries`` of the run, did not confirm ``evaluation``.

    ``missed`` is True if the mean misses the target, and False if it exceeds the target by too little.
    """
    found = f"the mean of {len(judged.returns)} fresh episodes is {number(judged.mean)}"
    if missed:
        return f"an evaluation of {number(evaluation.mean)} was luck: {found}"
    errors = strictness(tries)
    margin = number(errors * judged.std / math.sqrt(len(judged.returns)))
    return (
        f"{found}, which meets the target, but not by the required {margin} ({errors:.2f} standard errors): "
        f"confirmation {tries} of a run must be stricter, because one of many may pass by luck"
    )
