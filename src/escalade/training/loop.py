"""The generation loop: Salimans et al. 2017, algorithm 2, with a checkpoint after each generation."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from escalade.recorders import Recorder, Row
from escalade.storage.tensors import State, Tensors, record
from escalade.strategies import Strategy
from escalade.strategies.centers import Centers
from escalade.strategies.shaping import usable_number
from escalade.strategies.tensors import load_strategy, save_strategy
from escalade.support.interrupts import Interrupts
from escalade.support.machine import versions
from escalade.training.limits import Limits, Pace, TimeUp, clearly_harder, meets, refutation, with_failures
from escalade.training.notes import Notes
from escalade.training.objective import Evaluation, Objective, Outcome
from escalade.training.progress import Counts, Progress
from escalade.training.rows import Callback, View, make_row, rank_center
from escalade.training.saving import Saver

_PROBED = "probed"
"""Kind of note in a checkpoint which marks a run that was probed for irreproducible behavior."""


@dataclass(eq=False)
class Loop:
    """One run: in each generation ask the strategy, measure its members, tell it, record and save."""

    objective: Objective
    """Measures members and the center."""
    strategy: Strategy
    """Proposes members, and updates the center."""
    limits: Limits
    eval_every: int
    """Generations between evaluations of the center; 0 evaluates it only at the end."""
    interrupts: Interrupts
    """Signals that end the run."""
    recorders: Sequence[Recorder] = ()
    """Recorders of rows and notes."""
    callbacks: Sequence[Callback] = ()
    """Functions called after every generation, which may stop the run."""
    saver: Saver = field(default_factory=lambda: Saver(None))
    """Writer of checkpoints."""
    warn: bool = False
    """True if notes about unusable returns are also Python warnings."""

    def __post_init__(self) -> None:
        self.progress = Progress()
        self._cut = False  # True if the time limit was reached during a generation
        self._behaviors: NDArray[np.float32] | None = None  # of the last generation's members
        self.notes = Notes(self.recorders, self.progress, self.objective, self.saver.folder, self.warn)
        self.deadline = Pace(self.limits, self.notes.add)  # the objective's engine calls it while it waits

    def run(self) -> str:
        """Train until a limit, the target, a callback or an interrupt ends the run.

        Returns:
            ``solved``, ``generations``, ``env_steps``, ``seconds``, ``callback``, ``stopped`` or
            ``interrupted``.
        """
        self._save(force=True)
        reason = self._generations()
        self._save(force=True)  # the last complete generation: an incomplete one is repeated on resume
        if reason not in ("interrupted", "solved") and not self._evaluate_at_end():
            reason = "interrupted"
        if reason == "interrupted":
            self.objective.settle(self.strategy)
        return reason

    def _generations(self) -> str:
        """Run generations. Return the reason to stop."""
        while (reason := self._reason_to_stop()) is None:
            row = self.generation()
            if row is None:
                return "seconds" if self._cut else "interrupted"
            stop = self._run_callbacks(row)
            if not self.progress.solved and not self._warn_if_irreproducible():
                return "interrupted"
            if stop is not None and not self.progress.solved:
                return stop
        return reason

    def generation(self) -> Row | None:
        """Run one generation of algorithm 2.

        Return None, with the state unchanged, if it was interrupted. The time limit interrupts a generation
        as a signal does.
        """
        began, scales = time.monotonic(), (self.strategy.sigma, self.strategy.lr)
        allowed = self.limits.seconds_for_generation(self.progress)
        try:
            with self.deadline.within(allowed), self._save_on_failure():
                outcome = self.objective.measure(self.strategy, evaluate=self._evaluation_is_due())
                failed = self._check(outcome)
                judged, solved = self._judge(outcome)
        except KeyboardInterrupt:
            return None
        except TimeUp:
            self._abandon_generation(time.monotonic() - began)
            return None
        self._report(outcome, failed)
        if not solved:  # a confirmed center must not change
            self.strategy.tell(outcome.fitness if outcome.shaped is None else outcome.shaped)
            self.objective.learn(outcome)
        counts = outcome.counts + Counts(seconds=time.monotonic() - began, failed=len(failed))
        if judged is not None and judged is not outcome.evaluation:
            counts += judged.counts
        self.progress.count(counts, solved=solved)
        row = self._record(outcome, judged, scales, counts.seconds)
        self.deadline.ended(self.progress, counts.seconds)
        self._save()
        return row

    def _check(self, outcome: Outcome) -> NDArray[np.intp]:
        """Return the indices of the unusable scores. Raise if there are too many."""
        describe = partial(self._describe, outcome)
        failed = self.notes.check_usable(self.progress.generation + 1, outcome.scores, describe)
        self.notes.check_evaluation(outcome.evaluation)
        return failed

    def _report(self, outcome: Outcome, failed: NDArray[np.intp]) -> None:
        """Print notes about a generation: unusable scores, failed evaluations and hints."""
        number = self.progress.generation + 1
        self.notes.report_unusable(number, failed, partial(self._describe, outcome))
        if outcome.evaluation is not None:
            self.notes.report_evaluation(number, outcome.evaluation.raised)
        for kind, hint in outcome.hints.items():
            self.notes.add_once(hint, kind)

    def _describe(self, outcome: Outcome, index: int) -> str:
        """Describe the member and the result of a generation's n-th score."""
        member = self.objective.describe_member(self.strategy, outcome, index)
        return f"{member} {outcome.describe_result(index)}"

    @contextmanager
    def _save_on_failure(self) -> Iterator[None]:
        """Save the run if the body raises, so that counts and rows are complete."""
        try:
            yield
        except TimeUp:  # its handler changes the counts first; the run is saved later
            raise
        except BaseException:
            self._save(force=True)
            raise

    def _abandon_generation(self, seconds: float) -> None:
        """Count the time of a generation that the time limit ended. A resumed run repeats it."""
        self._cut = True
        self.progress.updates += Counts(seconds=seconds)
        self.saver.changed()
        advice = "; `max_episode_steps` ends long episodes" if self.objective.counts_steps else ""
        self.notes.add(
            f"time limit (`seconds={self.limits.seconds:g}`) reached in the middle of generation "
            f"{self.progress.generation + 1}; it will be repeated on resume{advice}"
        )

    def _warn_if_irreproducible(self) -> bool:
        """Warn once about anything that makes the run irreproducible. Return False if interrupted."""
        if _PROBED in self.progress.notes:
            return True
        try:
            texts = self.objective.reproducibility_notes()
        except KeyboardInterrupt:
            return False
        self.progress.notes[_PROBED] = 1
        self.saver.changed()  # the checkpoint of a run that ends here does not have this mark yet
        for text in texts:
            self.notes.add(text)
        return True

    def _reason_to_stop(self) -> str | None:
        return "interrupted" if self.interrupts.requested else self.limits.reached(self.progress)

    def _evaluation_is_due(self) -> bool:
        return self.eval_every > 0 and self.progress.generation % self.eval_every == 0

    def _judge(self, outcome: Outcome) -> tuple[Evaluation | None, bool]:
        """Record an evaluation, update the best policy, and confirm the target if it is met.

        Returns:
            The evaluation that counts, and True if the target is confirmed. The evaluation is the
            confirmation if there was one, and None in generations without an evaluation.
        """
        evaluation, solved = outcome.evaluation, False
        if evaluation is None:
            self._keep_best(outcome)
            return None, False
        streak = self.progress.target_streak + 1 if self._meets_target(evaluation) else 0
        if (target := self.limits.target_return) is not None and streak >= self.limits.target_patience:
            judged = self.objective.confirm(self.strategy, evaluation)  # first, as it may be interrupted
            self.notes.check_evaluation(judged)
            self.progress.tries += 1
            self.progress.tried.append(clearly_harder(judged, target, self.objective.direction))
            solved = self._meets_target(judged, self.progress.tries)
            note = with_failures(judged)
            if not solved:
                missed = not self._meets_target(judged)
                note, streak = refutation(evaluation, judged, self.progress.tries, missed=missed), 0
            if note:
                self.notes.add(f"generation {self.progress.generation + 1}: {note}")
            evaluation = judged
        self.progress.target_streak = streak
        self._remember(evaluation)
        self._keep_best(replace(outcome, evaluation=evaluation))
        return evaluation, solved

    def _meets_target(self, evaluation: Evaluation, tries: int = 1) -> bool:
        target = self.limits.target_return
        return target is not None and meets(evaluation.returns, target, self.objective.direction, tries)

    def _keep_best(self, outcome: Outcome) -> None:
        found, best = self.objective.best_of(self.strategy, outcome), self.progress.best_return
        if found is None or not usable_number(found):
            return
        if best is None or self.objective.direction * (found - best) > 0:
            self.progress.best_return, self.progress.best_generation = found, self.progress.generation
            self.objective.keep_best(self.strategy, outcome)

    def _remember(self, evaluation: Evaluation) -> None:
        done = self.progress
        done.evaluated, done.eval_return_mean = done.generation, evaluation.mean
        done.eval_return_std, done.eval_episodes = evaluation.std, len(evaluation.returns)
        done.eval_failed = evaluation.failed
        if isinstance(self.strategy, Centers):
            done.eval_center = self.strategy.drawn

    def _record(
        self, outcome: Outcome, judged: Evaluation | None, scales: tuple[float, float], seconds: float
    ) -> Row:
        self._behaviors = outcome.behaviors
        rank, fitness, center = rank_center(outcome, self.objective.direction)
        if outcome.evaluation is not None and not self.progress.solved:
            self.notes.explain_rank(self.progress.rows, fitness, center)
        facts = (outcome, judged, self.progress, self.strategy)
        row = make_row(*facts, scales=scales, rank=rank, seconds=seconds)
        for recorder in self.recorders:
            recorder.generation(row)
        return row

    def _run_callbacks(self, row: Row) -> str | None:
        """Call every callback. Return the reason to stop, or None if no callback stops the run."""
        if not self.callbacks:
            return None
        center = self.strategy.center.detach().clone()
        if self._behaviors is not None:
            self._behaviors.flags.writeable = False
        maker = self.objective.module_maker(center)
        view = View(row, center, self.progress.best_return, maker, self._behaviors)
        with self._save_on_failure():
            results = [callback(view) for callback in self.callbacks]  # all are called, even if one stops
        if "stopped" in results:
            return "stopped"
        return "callback" if any(results) else None

    def _save(self, *, force: bool = False) -> None:
        """Write a checkpoint if one is due, and then the best policy, which the checkpoint holds too."""
        if self.saver.save_if_due(self.progress, self.state, force=force):
            self.objective.write_best()

    def _evaluate_at_end(self) -> bool:
        """Evaluate the final center. Return False if interrupted; a resumed run then evaluates it."""
        seconds = self.limits.seconds_for_last_evaluation(self.progress, cut=self._cut)
        try:
            with self.deadline.within(seconds):
                evaluation = self.objective.evaluate(self.strategy)
            self.notes.check_evaluation(evaluation)
        except KeyboardInterrupt:
            return False
        except TimeUp:
            self.notes.add("time limit reached during the final evaluation; its episodes do not count")
            return True
        self._remember(evaluation)
        self.progress.updates += evaluation.counts
        return True

    def state(self) -> tuple[Tensors, State]:
        """Return everything that :meth:`load_state` needs for a bit-identical continuation."""
        tensors, numbers = save_strategy(self.strategy)
        own, facts = self.objective.state()
        return tensors | own, {
            **facts,
            "strategy": numbers,
            "progress": asdict(self.progress),
            "target": self.limits.target,
            "versions": versions(),
        }

    def load_state(self, tensors: Tensors, state: State) -> None:
        """Restore a checkpoint.

        Raises:
            InputError: The checkpoint is of a different strategy, policy or module.
        """
        load_strategy(self.strategy, tensors, state["strategy"])
        self.objective.load_state(tensors, state)
        self.objective.write_best()  # the file in the folder may be from a later checkpoint
        self.progress = record(Progress, state["progress"])
        self.notes.progress = self.progress
