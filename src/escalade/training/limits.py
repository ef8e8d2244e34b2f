"""The limits at which a run stops, its pace, and the test of whether it meets its target."""

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

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Give what is done in here so many seconds."""
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

    @property
    def target(self) -> State:
        """The target as a checkpoint records it: a resumed run may have another."""
        return {"target_return": self.target_return, "target_patience": self.target_patience}

    def seconds_for_generation(self, progress: Progress) -> float | None:
        """Seconds after which a generation that has not ended is given up; None where there is no budget.

        What is left of the budget, and a little more: what ends soon after it need not be lost.
        """
        if self.seconds is None:
            return None
        return self.left(progress) + self._overtime(_LEAST_SECONDS)

    def seconds_for_last_evaluation(self, progress: Progress, *, cut: bool) -> float | None:
        """Seconds after which the evaluation at the end is given up; None where there is no budget.

        ``cut`` where the last generation was given up.
        """
        if self.seconds is None:
            return None
        if cut:  # episodes that do not end: those of the evaluation may be no better
            return self._overtime(_LEAST_SECONDS)
        return self.left(progress) + self._overtime(_EVALUATION_SECONDS)

    def left(self, progress: Progress) -> float:
        """Seconds of the budget that are left; 0 without one."""
        return max(0.0, (self.seconds or 0.0) - progress.total.seconds)

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


_SILENT_SECONDS = 10.0
_FACTOR = 4.0  # between the silence after which a line is printed and that of the next
_FEW = 20  # generations in which little is learnt


class Pace(Deadline):
    """Deadline of generations that also reports a slow first one: rows show how long later ones take.

    ``limits`` are the run's, and ``say`` prints a note of it.
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

    def ended(self, progress: Progress, seconds: float) -> None:
        """Take note of a generation that took ``seconds``; after the first, tell if the budget allows few."""
        self._next = math.inf
        budget = self._limits.seconds
        if budget is None or progress.generation != 1:
            return
        most = 1 + math.ceil(self._limits.left(progress) / seconds)
        if most < _FEW:
            self._say(
                f"a generation takes {seconds:.2g} s, so `seconds={budget:g}` allows about {most} of them: "
                "fewer members (`population`), shorter episodes (`cutoff`) or more `workers` make them faster"
            )


_HARDER = 3.0  # standard errors


def meets(returns: Array, target: float, direction: float = 1.0, tries: int = 1) -> bool:
    """True where the mean return reaches the target, by the standard errors that :func:`strictness` asks for.

    Differences to the target are what is added up: returns that equal it meet it, to the last bit.

    Args:
        returns: shape (episodes,).
        target: their mean must be at least this; at most, with a ``direction`` of -1.
        direction: 1 where larger returns are better, -1 where smaller ones are.
        tries: how often the run has asked for it to be confirmed, this time included.
    """
    if not usable(returns).all():  # an episode diverged
        return False
    with np.errstate(invalid="ignore"):
        beyond = direction * (returns - target)
        return bool(beyond.mean() >= strictness(tries) * beyond.std() / math.sqrt(len(beyond)))


def strictness(tries: int) -> float:
    """The standard errors by which the mean of a run's k-th confirmation must be beyond the target.

    0 for the first, which is the field's criterion. Where means of returns are near a normal distribution and
    the policy is no better than the target, later ones pass by luck with a chance of at most 1 / (2 k²) each,
    and all of them together with 0.33. Rare failures are another matter: docs/runs.md.
    """
    return NormalDist().inv_cdf(1 - 0.5 / tries**2) if tries > 1 else 0.0


def clearly_harder(judged: Evaluation, target: float, direction: float = 1.0) -> float:
    """The target beyond which another is clearly harder than ``target``, which ``judged`` was to confirm.

    Three standard errors: a policy that is just as good as the easier target passes the harder one by luck
    with a chance of 0.001.
    """
    error = judged.std / math.sqrt(len(judged.returns))
    return target + direction * _HARDER * error if math.isfinite(error) else target


def with_failures(judged: Evaluation) -> str:
    """The words for a target that was met in episodes of which some failed; empty if none did."""
    if not judged.failed:
        return ""
    return (
        f"{judged.failed} of the {len(judged.returns)} episodes that confirm the target failed, and count as "
        "the worst of the others"
    )


def refutation(evaluation: Evaluation, judged: Evaluation, tries: int, *, missed: bool) -> str:
    """The words for an ``evaluation`` that ``judged``, confirmation ``tries`` of the run, has not confirmed.

    ``missed``: its mean misses the target; else it is not far enough beyond it.
    """
    found = f"{len(judged.returns)} fresh episodes give {number(judged.mean)}"
    if missed:
        return f"an evaluation of {number(evaluation.mean)} was luck: {found}"
    asked = strictness(tries)
    margin = number(asked * judged.std / math.sqrt(len(judged.returns)))
    return (
        f"{found}, which meets the target, but not by {margin}: so much ({asked:.2f} standard errors) is "
        f"asked of confirmation {tries} of a run, as one of many is luck"
    )
