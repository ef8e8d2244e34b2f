"""The notes of a run to the person who watches it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from escalade.errors import EnvironmentFailure, shortened
from escalade.recorders import Recorder, add_note
from escalade.storage.run_folder import RunFolder
from escalade.strategies.shaping import usable
from escalade.training.objective import Evaluation
from escalade.training.progress import Progress


class Words(Protocol):
    """The names of what a run improves and of what it runs; an :class:`Objective` has them."""

    subject: str
    """``policy`` or ``module``."""
    unit: str
    """``episodes``, or what else a member's fitness is made of, in the plural."""
    forgives: str | None
    """The option by which a tenth of them may fail, as messages name it; None where there is none."""
    tie_advice: str
    """Options that may tell members apart if all have the same fitness; may be empty."""


@dataclass(eq=False)
class Notes:
    """Gives notes to the recorders; of a kind that repeats itself only the 1st, 10th, 100th and so on."""

    recorders: Sequence[Recorder]
    progress: Progress
    """Holds how often each kind came up."""
    words: Words
    folder: RunFolder | None = None
    """Keeps them; None keeps none."""
    warn: bool = False
    """True if what the user must not miss is a Python warning as well: for calls that print nothing."""

    def say(self, text: str, kind: str | None = None) -> None:
        """Give a note; ``kind`` names what may repeat itself."""
        if kind is not None:
            counts = self.progress.notes
            count = counts[kind] = counts.get(kind, 0) + 1
            if count not in (1, 10, 100, 1000, 10_000):
                return
            text += f" ({count} times so far)" if count > 1 else ""
        text = shortened(text)
        self.progress.said += 1
        if self.folder is not None:
            add_note(self.folder.notes, self.progress.rows, text)
        for recorder in self.recorders:
            recorder.note(text)

    def say_once(self, text: str, kind: str) -> None:
        """Give a note, unless the run has given one of this kind."""
        if kind not in self.progress.notes:
            self.say(text, kind)

    def check_usable(
        self, generation: int, scores: NDArray[np.float64], describe: Callable[[int], str]
    ) -> NDArray[np.intp]:
        """The places of a generation's ``scores`` that are not usable.

        ``describe`` says of the n-th whose it is, and what it gave or raised.

        Raises:
            EnvironmentFailure: none is, or of those that may fail more than a tenth is not.
        """
        bad = np.flatnonzero(~usable(scores))
        if len(bad) and len(bad) == len(scores):
            raise EnvironmentFailure(
                f"return {scores[0]} or the like in all {len(bad)} {self.words.unit} of generation "
                f"{generation} (the first: {describe(0)}): there is nothing to learn from"
            )
        if self.words.forgives and len(bad):
            what = f"{self.words.unit} of generation {generation}"
            check_failures(len(bad), len(scores), what, describe(int(bad[0])), self.words.forgives)
        return bad

    def report_unusable(self, generation: int, bad: NDArray[np.intp], describe: Callable[[int], str]) -> None:
        """Say whose scores were not usable, and what they gave or raised: the places ``bad``, if any."""
        if len(bad) == 0:
            return
        others = f", and {len(bad) - 1} more like it" if len(bad) > 1 else ""
        text = (
            f"generation {generation}: {describe(int(bad[0]))}{others}; such members count as the worst of "
            "their generation"
        )
        if self.warn and "nonfinite" not in self.progress.notes:
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        self.say(text, kind="nonfinite")

    def check_evaluation(self, evaluation: Evaluation | None) -> None:
        """Refuse an evaluation in which too much failed, if anything may fail.

        Raises:
            EnvironmentFailure: more than a tenth failed, and more than one.
        """
        if evaluation is not None and evaluation.failed and self.words.forgives:
            what = f"{self.words.unit} of an evaluation after generation {self.progress.generation}"
            first, size = words_of(evaluation.raised), len(evaluation.returns)
            check_failures(evaluation.failed, size, what, first, self.words.forgives, least=1)

    def report_evaluation(self, generation: int, raised: str | None) -> None:
        """Say what the unperturbed policy or module ``raised`` in its evaluation, if anything."""
        if raised is not None:
            text = f"generation {generation}: the unperturbed {self.words.subject} raised {raised}"
            self.say(f"{text} in its evaluation", kind="evaluation")

    def explain_rank(self, generation: int, fitness: NDArray[np.float64], evaluation: float | None) -> None:
        """Say so when the members' ``fitness`` holds no gradient; larger is better in both.

        Without an ``evaluation`` that can be compared with the members, only whether they tie is looked at.
        """
        members, subject = len(fitness), self.words.subject
        words = f", or {self.words.tie_advice}," if self.words.tie_advice else ""
        if (fitness == fitness[0]).all():
            self.say(
                f"generation {generation}: all members have the same fitness, so there is nothing to learn "
                f"from: a larger sigma{' or longer episodes' if subject == 'policy' else ''}{words} may tell "
                "them apart",
                kind="equal",
            )
        elif evaluation is not None and members > 2 and (fitness < evaluation).all():
            self.say(
                f"generation {generation}: the unperturbed {subject} beats every member (rank 1 of "
                f"{members + 1}): noise only harms it, so the gradient is uninformative; a smaller sigma may "
                "help",
                kind="rank",
            )


_MOST = 0.1


def check_failures(failed: int, of: int, what: str, first: str, forgives: str, *, least: int = 0) -> None:
    """Refuse more failures than count as the worst of the others: a tenth.

    Args:
        failed: how many failed, or gave no usable number.
        of: how many there were.
        what: their name, in the plural.
        first: words for the first of them.
        forgives: the option by which they may fail.
        least: failures that are allowed in any case.

    Raises:
        EnvironmentFailure: there are more.
    """
    if failed > max(least, _MOST * of):
        raise EnvironmentFailure(
            f"{failed} of {of} {what} failed, or gave no usable number (the first: {first}): with "
            f"`{forgives}` no more than a tenth counts as the worst"
        )


def words_of(raised: str | None) -> str:
    """Say how an episode failed that ``raised`` this, in words, or nothing."""
    return "its return is no number" if raised is None else f"it raised {raised}"
