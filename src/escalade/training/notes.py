"""The notes that a run prints for its user."""

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


class Terms(Protocol):
    """The terms of a run's notes, which an :class:`Objective` has."""

    subject: str
    """``policy`` or ``module``."""
    unit: str
    """The source of returns in the plural, such as ``episodes``."""
    forgives: str | None
    """Option that tolerates failures in up to a tenth of the units, or None if they end the run."""
    tie_advice: str
    """Advice for a generation whose members all have the same fitness; may be empty."""


@dataclass(eq=False)
class Notes:
    """Passes notes to the recorders. Of a repeated kind, it passes only the 1st, 10th, 100th and so on."""

    recorders: Sequence[Recorder]
    progress: Progress
    """Counts the notes of each kind."""
    terms: Terms
    folder: RunFolder | None = None
    """Folder to write notes to, or None to write none."""
    warn: bool = False
    """True if important notes are also Python warnings, for calls that print nothing."""

    def add(self, text: str, kind: str | None = None) -> None:
        """Print a note. Repeated notes have the same ``kind``."""
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

    def add_once(self, text: str, kind: str) -> None:
        """Print a note, unless the run has printed one of this kind."""
        if kind not in self.progress.notes:
            self.add(text, kind)

    def check_usable(
        self, generation: int, scores: NDArray[np.float64], describe: Callable[[int], str]
    ) -> NDArray[np.intp]:
        """Return the indices of a generation's unusable ``scores``.

        ``describe`` returns the member and the result of the n-th score.

        Raises:
            EnvironmentFailure: All scores are unusable, or more than a tenth if failures are tolerated.
        """
        bad = np.flatnonzero(~usable(scores))
        if len(bad) and len(bad) == len(scores):
            raise EnvironmentFailure(
                f"all {len(bad)} {self.terms.unit} of generation {generation} failed or had no usable return "
                f"(the first: {describe(0)}), so there is nothing to learn from"
            )
        if self.terms.forgives and len(bad):
            what = f"{self.terms.unit} of generation {generation}"
            check_failures(len(bad), len(scores), what, describe(int(bad[0])), self.terms.forgives)
        return bad

    def report_unusable(self, generation: int, bad: NDArray[np.intp], describe: Callable[[int], str]) -> None:
        """Print a note about the unusable scores at the indices ``bad``, if there are any."""
        if len(bad) == 0:
            return
        others = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
        text = (
            f"generation {generation}: {describe(int(bad[0]))}{others}; such members count as the worst of "
            "their generation"
        )
        if self.warn and "nonfinite" not in self.progress.notes:
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        self.add(text, kind="nonfinite")

    def check_evaluation(self, evaluation: Evaluation | None) -> None:
        """Check the number of failed episodes in an evaluation, if failures are tolerated.

        Raises:
            EnvironmentFailure: More than a tenth failed, and more than one.
        """
        if evaluation is not None and evaluation.failed and self.terms.forgives:
            what = f"{self.terms.unit} of an evaluation after generation {self.progress.generation}"
            first, size = describe_failure(evaluation.raised), len(evaluation.returns)
            check_failures(evaluation.failed, size, what, first, self.terms.forgives, least=1)

    def report_evaluation(self, generation: int, raised: str | None) -> None:
        """Print a note if the unperturbed policy or module ``raised`` in its evaluation."""
        if raised is not None:
            text = f"generation {generation}: the unperturbed {self.terms.subject} raised {raised}"
            self.add(f"{text} in its evaluation", kind="evaluation")

    def explain_rank(self, generation: int, fitness: NDArray[np.float64], evaluation: float | None) -> None:
        """Print a note if the members' ``fitness`` contains no gradient.

        Larger is better in both arguments. Without an ``evaluation`` that can be compared with the members,
        only ties are reported.
        """
        members, subject = len(fitness), self.terms.subject
        advice = f", or {self.terms.tie_advice}," if self.terms.tie_advice else ""
        if (fitness == fitness[0]).all():
            self.add(
                f"generation {generation}: all members have the same fitness, so there is no gradient; "
                f"a larger sigma{' or longer episodes' if subject == 'policy' else ''}{advice} may help",
                kind="equal",
            )
        elif evaluation is not None and members > 2 and (fitness < evaluation).all():
            self.add(
                f"generation {generation}: the unperturbed {subject} beats every member (rank 1 of "
                f"{members + 1}): all noise harms it, so the gradient is uninformative; a smaller sigma may "
                "help",
                kind="rank",
            )


_MOST = 0.1


def check_failures(failed: int, of: int, what: str, first: str, forgives: str, *, least: int = 0) -> None:
    """Check that at most a tenth failed.

    Args:
        failed: Number of failures.
        of: Number of all units.
        what: Name of the units, in the plural.
        first: Description of the first failure.
        forgives: Option that tolerates failures.
        least: Number of failures that is always tolerated.

    Raises:
        EnvironmentFailure: More than a tenth failed.
    """
    if failed > max(least, _MOST * of):
        raise EnvironmentFailure(
            f"{failed} of {of} {what} failed or had no usable return (the first: {first}); "
            f"`{forgives}` tolerates at most a tenth"
        )


def describe_failure(raised: str | None) -> str:
    """Describe the failure of an episode by its exception's message, or by its return."""
    return "its return is not a number" if raised is None else f"it raised {raised}"
