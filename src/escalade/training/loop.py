"""The generation loop: Salimans et al. 2017, algorithm 2, with a checkpoint after each turn."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import nn

from escalade.errors import EnvironmentFailure
from escalade.recorders import Recorder, Row, quantiles
from escalade.recorders.goals import number
from escalade.storage.tensors import State, Tensors
from escalade.strategies import Strategy
from escalade.strategies.saving import load_strategy, save_strategy
from escalade.strategies.shaping import usable
from escalade.support.interrupts import Interrupts
from escalade.training.limits import Deadline, Limits, TimeUp
from escalade.training.notes import Notes
from escalade.training.objective import Evaluation, Objective, Outcome
from escalade.training.progress import Counts, Progress
from escalade.training.saving import Saver
from escalade.training.versions import versions

_MOST_FAILED = 0.1  # of a generation's episodes, where those that raise do not end the run


@dataclass(frozen=True)
class View:
    """A generation as callbacks see it. What they do to it does not change the run."""

    row: Row
    center: NDArray[np.float32]
    """The unperturbed parameters after the generation, shape (dimension,), read-only."""
    best_return: float | None
    """The best so far, of evaluations in ``train``, of members too in ``evolve``; None before the first."""
    module: Callable[[], nn.Module]
    """Makes a module with these parameters, a Policy in ``train``; it is the caller's own."""


Callback = Callable[[View], bool | None]
"""Called after every generation; True stops the run."""


class Loop:
    """One run: asks the strategy, measures its members, tells it, records, saves, stops.

    Args:
        objective: what measures members and the centre.
        strategy: how the centre moves.
        limits: when to stop.
        eval_every: generations between evaluations of the centre; 0 for none but the last.
        recorders: who records rows and notes.
        callbacks: who may look at every generation, and stop the run.
        saver: what writes checkpoints.
        warn: whether notes of unusable returns are Python warnings as well.
    """

    def __init__(
        self,
        objective: Objective,
        strategy: Strategy,
        limits: Limits,
        *,
        eval_every: int,
        interrupts: Interrupts,
        recorders: Sequence[Recorder] = (),
        callbacks: Sequence[Callback] = (),
        saver: Saver | None = None,
        warn: bool = False,
    ) -> None:
        self.objective = objective
        self.strategy = strategy
        self.limits = limits
        self.eval_every = eval_every
        self.interrupts = interrupts
        self.recorders = recorders
        self.callbacks = callbacks
        self.saver = saver or Saver(None)
        self.deadline = Deadline()  # what the engine that the objective runs on asks while it waits
        self.progress = Progress()
        self._cut = False  # whether the time ended inside a generation
        self.notes = Notes(recorders, self.progress.notes, objective.subject, warn=warn)

    def run(self) -> str:
        """Train until something says stop; why it ended.

        Returns:
            ``solved``, ``generations``, ``env_steps``, ``seconds``, ``callback`` or ``interrupted``.
        """
        self.saver.save_if_due(self.progress, self.state, force=True)
        reason = self._generations()
        # The state is that of a whole generation: what was in flight runs again on resume.
        self.saver.save_if_due(self.progress, self.state, force=True)
        if reason not in ("solved", "interrupted"):
            self._evaluate_finally()
        return reason

    def _generations(self) -> str:
        """Turn after turn; why it ended."""
        while (reason := self._reason_to_stop()) is None:
            row = self.generation()
            if row is None:
                return "seconds" if self._cut else "interrupted"
            self.saver.save_if_due(self.progress, self.state)
            if row.generation == 1 and not self.progress.solved and not self._tell_of_impurity():
                return "interrupted"
            if self._call_back(row) and not self.progress.solved:
                return "callback"
        return reason

    def generation(self) -> Row | None:
        """One turn of algorithm 2; None where an interrupt or the end of the time has left all as it was."""
        began = time.monotonic()
        self.deadline.set(self.limits.seconds_for_generation(self.progress))
        try:
            outcome = self.objective.measure(self.strategy, evaluate=self._evaluation_is_due())
            confirmed = self._judge(outcome)
        except KeyboardInterrupt:
            return None
        except TimeUp:
            self._give_up(time.monotonic() - began)
            return None
        finally:
            self.deadline.set(None)
        scales = self.strategy.sigma, self.strategy.lr  # this generation's: tell moves them on
        self._report_nonfinite(outcome)
        if outcome.hint is not None:
            self.notes.say_once(outcome.hint, "hint")
        if confirmed is None:  # else the centre met the target, and stays as it was confirmed
            self.strategy.tell(outcome.fitness)
            said = self.objective.learn(self.strategy, outcome)
            if said is not None:
                self.notes.say(f"generation {self.progress.generation + 1}: {said}")
        self._count(outcome, confirmed, began)
        return self._record(outcome, scales, began)

    def _give_up(self, seconds: float) -> None:
        """Count the time of a generation that did not end in it; a resumed run begins it again."""
        self._cut = True
        self.progress.updates += Counts(seconds=seconds)
        self.saver.changed()
        mend = "; `max_episode_steps` ends long episodes" if self.objective.counts_steps else ""
        self.notes.say(
            f"generation {self.progress.generation + 1}: its {self.objective.episodes} had not ended when "
            f"the time was up (`seconds={self.limits.seconds:g}`), so it is begun again when the run is "
            f"resumed{mend}"
        )

    def _tell_of_impurity(self) -> bool:
        """Say what the objective has to say of itself; False when the user interrupted it."""
        try:
            text = self.objective.reproducibility_note()
        except KeyboardInterrupt:
            return False
        if text is not None:
            self.notes.say(text)
        return True

    def _reason_to_stop(self) -> str | None:
        return "interrupted" if self.interrupts.requested else self.limits.reached(self.progress)

    def _evaluation_is_due(self) -> bool:
        return self.eval_every > 0 and self.progress.generation % self.eval_every == 0

    def _judge(self, outcome: Outcome) -> Evaluation | None:
        """Remember the evaluation; where it meets the target, and that is confirmed, the confirming one."""
        self._keep_best(outcome)
        evaluation = outcome.evaluation
        if evaluation is None:
            return None
        self._remember(evaluation)
        streak = self.progress.target_streak + 1 if self._meets_target(evaluation) else 0
        confirmed = None
        if streak >= self.limits.target_patience:  # an interrupt in here leaves the streak as it was
            confirmed = self.objective.confirm(self.strategy, evaluation)
            if not self._meets_target(confirmed):
                self._report_luck(evaluation, confirmed)
                confirmed, streak = None, 0
        self.progress.target_streak = streak
        return confirmed

    def _report_luck(self, evaluation: Evaluation, confirmed: Evaluation) -> None:
        self._remember(confirmed)
        self.progress.updates += confirmed.counts
        self.notes.say(
            f"generation {self.progress.generation + 1}: an evaluation of {number(evaluation.mean)} was "
            f"luck: {len(confirmed.returns)} fresh episodes give {number(confirmed.mean)}"
        )

    def _meets_target(self, evaluation: Evaluation) -> bool:
        target, sign = self.limits.target_return, self.objective.direction
        return target is not None and sign * evaluation.mean >= sign * target

    def _keep_best(self, outcome: Outcome) -> None:
        found, best = self.objective.best_of(self.strategy, outcome), self.progress.best_return
        if found is None or not math.isfinite(found):
            return
        if best is None or self.objective.direction * (found - best) > 0:
            self.progress.best_return, self.progress.best_generation = found, self.progress.generation
            self.objective.keep_best(self.strategy, outcome)

    def _remember(self, evaluation: Evaluation) -> None:
        self.progress.eval_return_mean = evaluation.mean
        self.progress.eval_return_std = evaluation.std
        self.progress.eval_episodes = len(evaluation.returns)

    def _count(self, outcome: Outcome, confirmed: Evaluation | None, began: float) -> None:
        counts = outcome.counts + Counts(seconds=time.monotonic() - began)
        if confirmed is None:
            self.progress.generation += 1
            self.progress.updates += counts
            return
        self._remember(confirmed)
        self.progress.solving = counts
        if confirmed is not outcome.evaluation:
            self.progress.solving += confirmed.counts

    def _record(self, outcome: Outcome, scales: tuple[float, float], began: float) -> Row:
        done, total = self.progress, self.progress.total
        returns = outcome.returns[usable(outcome.returns)]
        spread = returns if len(returns) else np.full(1, np.nan)
        steps = outcome.env_steps
        row = Row(
            generation=done.rows,
            episodes=total.episodes,
            env_steps=None if steps is None else total.env_steps,
            seconds=round(total.seconds, 4),
            return_mean=float(spread.mean()),
            return_std=float(spread.std()),
            return_min=float(spread.min()),
            return_max=float(spread.max()),
            episode_length_mean=None if steps is None else steps / len(outcome.returns),
            eval_return_mean=None if outcome.evaluation is None else outcome.evaluation.mean,
            unperturbed_rank=self._rank(outcome),
            sigma=scales[0],
            lr=scales[1],
            update_ratio=0.0 if done.solved else self.strategy.update_ratio,
            steps_per_second=None if steps is None else _rate(steps, began),
            eval_steps=None if steps is None else total.eval_steps,
            nonfinite=len(outcome.returns) - len(returns),
            info=outcome.info,
            quantiles=quantiles(spread),
        )
        for recorder in self.recorders:
            recorder.generation(row)
        return row

    def _rank(self, outcome: Outcome) -> int | None:
        """The centre's rank among the members, 1 for the best; None when it was not evaluated as they are."""
        if outcome.evaluation is None:
            return None
        fitness = self.objective.direction * outcome.fitness
        evaluation = self.objective.direction * outcome.evaluation.fitness if outcome.comparable else None
        if not self.progress.solved:
            self.notes.explain_rank(self.progress.rows, fitness, evaluation)
        return None if evaluation is None else 1 + int((fitness > evaluation).sum())

    def _report_nonfinite(self, outcome: Outcome) -> None:
        """Say which return was not usable.

        Raises:
            EnvironmentFailure: none was, or of those that may fail more than a tenth was not.
        """
        bad = np.flatnonzero(~usable(outcome.scores))
        if len(bad) == 0:
            return
        generation, first = self.progress.generation + 1, int(bad[0])
        who = self.objective.describe_member(self.strategy, outcome, first)
        if len(bad) == len(outcome.scores):
            raise EnvironmentFailure(
                f"return {outcome.scores[first]} or the like in all {len(bad)} {self.objective.episodes} of "
                f"generation {generation} ({who} first): there is nothing to learn from"
            )
        if self.objective.forgives and len(bad) > _MOST_FAILED * len(outcome.scores):
            raise EnvironmentFailure(
                f"{len(bad)} of {len(outcome.scores)} {self.objective.episodes} of generation {generation} "
                f"failed ({who} first): more than a tenth is too many to count as the worst; without "
                f"`{self.objective.forgives}` the first that raises is shown"
            )
        others = f", and {len(bad) - 1} more like it" if len(bad) > 1 else ""
        self.notes.say_nonfinite(
            f"generation {generation}: {who} returned {outcome.scores[first]}{others}; such members "
            "count as the worst of their generation"
        )

    def _call_back(self, row: Row) -> bool:
        """Show the generation to every callback; whether one wants the run to stop."""
        if not self.callbacks:
            return False
        center = self.center
        center.flags.writeable = False
        view = View(row, center, self.progress.best_return, self.objective.module_maker(self.strategy))
        try:
            answers = [callback(view) for callback in self.callbacks]  # every one of them sees the view
        except BaseException:
            self.saver.save_if_due(self.progress, self.state, force=True)  # the generation is whole
            raise
        return any(answers)

    def _evaluate_finally(self) -> None:
        """Evaluate the centre as the run leaves it."""
        self.deadline.set(self.limits.seconds_for_last_evaluation(self.progress, cut=self._cut))
        try:
            evaluation = self.objective.evaluate(self.strategy)
        except KeyboardInterrupt:
            return  # the last evaluation there was then stands
        except TimeUp:
            self.notes.say("the last evaluation had not ended when its time was up: it is left out")
            return
        finally:
            self.deadline.set(None)
        self._remember(evaluation)
        self.progress.updates += evaluation.counts

    @property
    def center(self) -> NDArray[np.float32]:
        """The unperturbed parameters, shape (dimension,)."""
        return np.asarray(self.strategy.center.detach().numpy().copy())

    def state(self) -> tuple[Tensors, State]:
        """Everything that :meth:`load_state` needs to go on bit for bit."""
        tensors, numbers = save_strategy(self.strategy)
        own, facts = self.objective.state()
        return tensors | own, {
            **facts,
            "strategy": numbers,
            "progress": self.progress.to_dict(),
            "versions": versions(),
        }

    def load_state(self, tensors: Tensors, state: State) -> None:
        """Take over a checkpoint.

        Raises:
            InputError: it belongs to another strategy, policy or module.
        """
        load_strategy(self.strategy, tensors, state["strategy"])
        self.objective.load_state(tensors, state)
        self.progress = Progress.from_dict(state["progress"])
        self.notes.counts = self.progress.notes


def _rate(steps: int, began: float) -> float:
    return round(steps / max(time.monotonic() - began, 1e-9), 1)
