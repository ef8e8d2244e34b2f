"""Run a sweep: hand out trials, report what they reach, end those that do badly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escalade.api.groups import assignments
from escalade.api.sweep.crew import Crew, Hand
from escalade.api.sweep.results import PLAN, SweepResult, result_of, trial_folders, write_results
from escalade.api.sweep.study import again, chosen, distributions, open_study
from escalade.api.sweep.trial import PARTS
from escalade.config.sweep import SweepPlan, read_sweep
from escalade.errors import InputError
from escalade.storage.files import read_bytes, storage, write_bytes
from escalade.storage.lock import FolderLock
from escalade.support.interrupts import Interrupts
from escalade.support.numbers import number, whole_number

if TYPE_CHECKING:
    from optuna import Study, Trial

_POLL_SECONDS = 0.2
_MAY_CHANGE = ("trials",)
"""Entries of a sweep's file that may be others when it goes on."""


@dataclass(frozen=True)
class Swept:
    """How a sweep ended."""

    result: SweepResult
    interrupted: bool
    files: tuple[Path, ...]
    """What was written into its folder."""


def sweep(
    file: str | PathLike[str],
    *,
    run_dir: str | PathLike[str] | None = None,
    jobs: int = 1,
    trials: int | None = None,
    say: Callable[[str], None] = print,
) -> Swept:
    """Search for options, as a file describes it; see :class:`escalade.config.sweep.SweepPlan`.

    Each trial is a run, or one for each seed, in the sweep's folder. A sweep that was interrupted or killed
    goes on where it was. With one job, and a budget that is not in seconds, the same file gives the same
    trials, whether it was interrupted or not.

    Args:
        file: TOML.
        run_dir: the sweep's folder; None for ``runs/sweep-NAME``, with the name of the file.
        jobs: trials that run at the same time, in processes.
        trials: how many there are to be; None for what the file says.
        say: called with a line for each trial.

    Raises:
        InputError: something in the file is wrong, or the folder is another sweep's.
        EngineFailure: the process of a trial was lost.
    """
    whole_number(jobs, "`jobs`", 1)
    plan = read_sweep(file, trials)
    folder = Path("runs") / f"sweep-{Path(file).stem}" if run_dir is None else Path(run_dir)
    with storage(folder, "choose another `run_dir`"):
        folder.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(folder)
    lock.acquire()
    try:
        _keep_plan(Path(file), plan, folder)
        lead = _Lead(open_study(plan, folder), plan, folder, jobs, say)
        interrupted = lead.run()
        result = result_of(lead.study, plan, folder)
        return Swept(result, interrupted, tuple(write_results(result)))
    finally:
        lock.release()


def _keep_plan(file: Path, plan: SweepPlan, folder: Path) -> None:
    """Keep a copy of the file in the folder, where there is none; refuse the folder of another sweep."""
    kept = folder / PLAN
    if kept.exists():
        before, now = (
            {name: value for name, value in vars(one).items() if name not in _MAY_CHANGE}
            for one in (read_sweep(kept), plan)
        )
        others = [name for name in now if now[name] != before[name]]
        if others:
            raise InputError(f"{folder} holds a sweep with other {others[0]}: name another `run_dir`")
    elif any(folder.glob("*/config.toml")) or (folder / "config.toml").exists():
        raise InputError(f"{folder} holds runs, and is not the folder of a sweep: name another `run_dir`")
    else:
        write_bytes(kept, read_bytes(file))


class _Lead:
    """Hands trials to processes and answers them."""

    def __init__(
        self, study: Study, plan: SweepPlan, folder: Path, jobs: int, say: Callable[[str], None]
    ) -> None:
        self.study, self._plan, self._folder, self._say = study, plan, folder, say
        self._space = distributions(plan)
        self._trials: dict[int, Trial] = {}
        self._waiting = self._begun()
        self._jobs = max(1, min(jobs, plan.trials - len(self._ended())))

    def run(self) -> bool:
        """Run what is missing; whether it was interrupted."""
        ended = len(self._ended())
        if ended >= self._plan.trials:
            return False
        done = f", {ended} of them done already" if ended else ""
        self._say(f"{self._plan.trials} trials in {self._folder}{done}")
        told = False
        with Interrupts() as interrupts, Crew(self._jobs, self._folder) as crew:
            while True:
                while not interrupts.requested and (hand := crew.idle()) and (trial := self._next()):
                    self._start(hand, trial)
                if not crew.busy():
                    return interrupts.requested
                for hand in crew.ready(_POLL_SECONDS):
                    for answer in hand.answers():
                        self._take(hand, answer)
                if interrupts.requested and not told:
                    told = True
                    for hand in crew.busy():
                        hand.interrupt()

    def _ended(self) -> list[Any]:
        return [one for one in self.study.get_trials(deepcopy=False) if one.state.is_finished()]

    def _begun(self) -> list[Trial]:
        """Trials that an earlier sweep did not end, first those with the smallest numbers."""
        from optuna.trial import TrialState

        begun = self.study.get_trials(deepcopy=False, states=[TrialState.RUNNING])
        return [again(self.study, one) for one in begun]

    def _next(self) -> Trial | None:
        """The next trial, suggested anew where none waits; None where there are enough."""
        if self._waiting:
            return self._waiting.pop(0)
        if len(self.study.get_trials(deepcopy=False)) >= self._plan.trials:
            return None
        return self.study.ask(self._space)

    def _start(self, hand: Hand, trial: Trial) -> None:
        from optuna.trial import TrialState

        try:
            config = self._plan.config(chosen(self._plan, trial.params))
        except InputError as problem:  # options that do not go together
            self.study.tell(trial, state=TrialState.FAIL)
            self._say(f"trial {trial.number}: failed: {problem}  {self._described(trial)}")
            return
        if config.workers is None and self._jobs > 1:
            share = config.worker_count // self._jobs
            config = config.replace(workers=share if share > 1 else 0)
        folders = trial_folders(self._folder, self._plan, trial.number)
        configs = [
            asdict(config.replace(seed=seed, run_dir=str(folder)))
            for seed, folder in zip(self._plan.seeds, folders, strict=True)
        ]
        self._trials[trial.number] = trial
        hand.begin(trial.number, configs)

    def _take(self, hand: Hand, answer: dict[str, Any]) -> None:
        """Take in what a process says of its trial."""
        from optuna.trial import TrialState

        assert hand.trial is not None
        trial = self._trials[hand.trial]
        if "part" in answer:
            reported = self.study.get_trials(deepcopy=False)[trial.number].intermediate_values
            if new := answer["part"] not in reported:
                trial.report(answer["at"], answer["part"])
            # Of what was reported before, only the last verdict may not have arrived.
            judged = new or answer["part"] == max(reported)
            hand.say({"prune": judged and bool(trial.should_prune())})
            return
        hand.trial = None
        if "value" in answer:
            self.study.tell(trial, answer["value"])
            best = self.study.best_trial
            record = "the best so far" if best.number == trial.number else f"best {number(best.value)}"
            self._say(
                f"trial {trial.number}: return {number(answer['value'])}, {record}  {self._described(trial)}"
            )
        elif "pruned" in answer:
            self._tell_pruned(trial)
        elif "failed" in answer:
            self.study.tell(trial, state=TrialState.FAIL)
            self._say(f"trial {trial.number}: failed: {answer['failed']}  {self._described(trial)}")

    def _tell_pruned(self, trial: Trial) -> None:
        from optuna.trial import TrialState

        self.study.tell(trial, state=TrialState.PRUNED)
        values = self.study.get_trials(deepcopy=False)[trial.number].intermediate_values
        part = max(values) / (PARTS * len(self._plan.seeds))
        reached = f"{part:.0%} of the budget, return {number(values[max(values)])}"
        self._say(f"trial {trial.number}: pruned after {reached}  {self._described(trial)}")

    def _described(self, trial: Trial) -> str:
        return assignments(trial.params, trial.params)
