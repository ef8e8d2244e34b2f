"""The generation loop: Salimans et al. 2017, algorithm 2, with a checkpoint after each turn."""

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
"""Kind of note in a checkpoint that says: the run was probed for what it cannot reproduce."""


@dataclass(eq=False)
class Loop:
    """One run: asks the strategy, measures its members, tells it, records, saves, stops."""

    objective: Objective
    """The measure of members and of the centre."""
    strategy: Strategy
    """The way that the centre moves."""
    limits: Limits
    eval_every: int
    """Generations between evaluations of the centre; 0 for none but the last."""
    interrupts: Interrupts
    """The signals that end the run."""
    recorders: Sequence[Recorder] = ()
    """Recorders of rows and notes."""
    callbacks: Sequence[Callback] = ()
    """Functions that look at every generation, and may stop the run."""
    saver: Saver = field(default_factory=lambda: Saver(None))
    """The writer of checkpoints."""
    warn: bool = False
    """True if notes of unusable returns are Python warnings as well."""

    def __post_init__(self) -> None:
        self.progress = Progress()
        self._cut = False  # whether the time ended inside a generation
        self._behaviours: NDArray[np.float32] | None = None  # of the last generation's members
        self.notes = Notes(self.recorders, self.progress, self.objective, self.saver.folder, self.warn)
        self.deadline = Pace(self.limits, self.notes.say)  # the objective's engine calls it while it waits

    def run(self) -> str:
        """Train until something says stop; why it ended.

        Returns:
            ``solved``, ``generations``, ``env_steps``, ``seconds``, ``callback``, ``stopped`` or
            ``interrupted``.
        """
        self._save(force=True)
        reason = self._generations()
        self._save(force=True)  # a whole generation's state: what was in flight runs again on resume
        if reason not in ("interrupted", "solved") and not self._evaluate_finally():
            reason = "interrupted"
        if reason == "interrupted":
            self.objective.settle(self.strategy)
        return reason

    def _generations(self) -> str:
        """Turn after turn; why it ended."""
        while (reason := self._reason_to_stop()) is None:
            row = self.generation()
            if row is None:
                return "seconds" if self._cut else "interrupted"
            asked = self._call_back(row)
            if not self.progress.solved and not self._tell_of_impurity():
                return "interrupted"
            if asked is not None and not self.progress.solved:
                return asked
        return reason

    def generation(self) -> Row | None:
        """One turn of algorithm 2; None where an interrupt or the end of the time has left all as it was."""
        began, scales = time.monotonic(), (self.strategy.sigma, self.strategy.lr)
        allowed = self.limits.seconds_for_generation(self.progress)
        try:
            with self.deadline.within(allowed), self._saved_if_it_fails():
                outcome = self.objective.measure(self.strategy, evaluate=self._evaluation_is_due())
                failed = self._check(outcome)
                judged, solved = self._judge(outcome)
        except KeyboardInterrupt:
            return None
        except TimeUp:
            self._give_up(time.monotonic() - began)
            return None
        self._tell_of(outcome, failed)
        if not solved:  # else the center stays as it was confirmed
            self.strategy.tell(outcome.fitness if outcome.told is None else outcome.told)
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
        """The places of the scores that are not usable, if there are not too many."""
        describe = partial(self._describe, outcome)
        failed = self.notes.check_usable(self.progress.generation + 1, outcome.scores, describe)
        self.notes.check_evaluation(outcome.evaluation)
        return failed

    def _tell_of(self, outcome: Outcome, failed: NDArray[np.intp]) -> None:
        """Say what a generation showed that its watcher should know."""
        number = self.progress.generation + 1
        self.notes.report_unusable(number, failed, partial(self._describe, outcome))
        if outcome.evaluation is not None:
            self.notes.report_evaluation(number, outcome.evaluation.raised)
        for kind, hint in outcome.hints.items():
            self.notes.say_once(hint, kind)

    def _describe(self, outcome: Outcome, place: int) -> str:
        """Say whose a generation's n-th score is, and what it came to."""
        return f"{self.objective.describe_member(self.strategy, outcome, place)} {outcome.gave(place)}"

    @contextmanager
    def _saved_if_it_fails(self) -> Iterator[None]:
        """Save the run where what is done in here fails: nothing is half counted then, and no row missing."""
        try:
            yield
        except TimeUp:  # is told first, and saved then
            raise
        except BaseException:
            self._save(force=True)
            raise

    def _give_up(self, seconds: float) -> None:
        """Count the time of a generation that did not end in it; a resumed run begins it again."""
        self._cut = True
        self.progress.updates += Counts(seconds=seconds)
        self.saver.changed()
        mend = "; `max_episode_steps` ends long episodes" if self.objective.counts_steps else ""
        self.notes.say(
            f"generation {self.progress.generation + 1}: its {self.objective.unit} had not ended when "
            f"the time was up (`seconds={self.limits.seconds:g}`), so it is begun again when the run is "
            f"resumed{mend}"
        )

    def _tell_of_impurity(self) -> bool:
        """Say once what objective and strategy do not reproduce; False when the user interrupted it."""
        if _PROBED in self.progress.notes:
            return True
        try:
            texts = self.objective.reproducibility_notes()
        except KeyboardInterrupt:
            return False
        self.progress.notes[_PROBED] = 1
        self.saver.changed()  # of a run that ends here, the checkpoint does not know of it yet
        for text in texts:
            self.notes.say(text)
        return True

    def _reason_to_stop(self) -> str | None:
        return "interrupted" if self.interrupts.requested else self.limits.reached(self.progress)

    def _evaluation_is_due(self) -> bool:
        return self.eval_every > 0 and self.progress.generation % self.eval_every == 0

    def _judge(self, outcome: Outcome) -> tuple[Evaluation | None, bool]:
        """Remember what the centre is worth, and the best one; whether it is solved.

        Returns:
            The evaluation that counts: where one met the target, the one that was to confirm it. None in
            generations without one.
        """
        evaluation, solved = outcome.evaluation, False
        if evaluation is None:
            self._keep_best(outcome)
            return None, False
        streak = self.progress.target_streak + 1 if self._meets_target(evaluation) else 0
        if (target := self.limits.target_return) is not None and streak >= self.limits.target_patience:
            judged = self.objective.confirm(self.strategy, evaluation)  # an interrupt leaves all as it was
            self.notes.check_evaluation(judged)
            self.progress.tries += 1
            self.progress.tried.append(clearly_harder(judged, target, self.objective.direction))
            solved = self._meets_target(judged, self.progress.tries)
            said = with_failures(judged)
            if not solved:
                missed = not self._meets_target(judged)
                said, streak = refutation(evaluation, judged, self.progress.tries, missed=missed), 0
            if said:
                self.notes.say(f"generation {self.progress.generation + 1}: {said}")
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
        self._behaviours = outcome.behaviours
        rank, fitness, center = rank_center(outcome, self.objective.direction)
        if outcome.evaluation is not None and not self.progress.solved:
            self.notes.explain_rank(self.progress.rows, fitness, center)
        facts = (outcome, judged, self.progress, self.strategy)
        row = make_row(*facts, scales=scales, rank=rank, seconds=seconds)
        for recorder in self.recorders:
            recorder.generation(row)
        return row

    def _call_back(self, row: Row) -> str | None:
        """Show the generation to every callback; why the run is to stop, where one wants it to."""
        if not self.callbacks:
            return None
        center = self.strategy.center.detach().clone()
        if self._behaviours is not None:
            self._behaviours.flags.writeable = False
        maker = self.objective.module_maker(center)
        view = View(row, center, self.progress.best_return, maker, self._behaviours)
        with self._saved_if_it_fails():
            answers = [callback(view) for callback in self.callbacks]  # each of them sees the view
        if "stopped" in answers:
            return "stopped"
        return "callback" if any(answers) else None

    def _save(self, *, force: bool = False) -> None:
        """Write a checkpoint where it is time to, and after it the best policy, which it holds too."""
        if self.saver.save_if_due(self.progress, self.state, force=force):
            self.objective.write_best()

    def _evaluate_finally(self) -> bool:
        """Evaluate the centre as the run leaves it; False where that was interrupted: resuming does it."""
        seconds = self.limits.seconds_for_last_evaluation(self.progress, cut=self._cut)
        try:
            with self.deadline.within(seconds):
                evaluation = self.objective.evaluate(self.strategy)
            self.notes.check_evaluation(evaluation)
        except KeyboardInterrupt:
            return False
        except TimeUp:
            self.notes.say("the last evaluation had not ended when its time was up: it is left out")
            return True
        self._remember(evaluation)
        self.progress.updates += evaluation.counts
        return True

    def state(self) -> tuple[Tensors, State]:
        """Everything that :meth:`load_state` needs to go on bit for bit."""
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
        """Take over a checkpoint.

        Raises:
            InputError: it belongs to another strategy, policy or module.
        """
        load_strategy(self.strategy, tensors, state["strategy"])
        self.objective.load_state(tensors, state)
        self.objective.write_best()  # what the folder holds may be another checkpoint's
        self.progress = record(Progress, state["progress"])
        self.notes.progress = self.progress
