"""A search for options by Optuna: trials are runs in processes of their own, judged by their folders."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from statistics import fmean
from threading import Lock
from typing import TYPE_CHECKING, Any

from escalade.api.groups import assignments
from escalade.api.jobs import check_job, end_jobs, start_job
from escalade.api.series import plan_series
from escalade.api.swept import PARTS, PLAN, SweepResult, open_study, write_results
from escalade.config.options import Config
from escalade.config.sweep import BUDGETS, read_sweep
from escalade.errors import EscaladeError, InputError
from escalade.recorders import Row
from escalade.recorders.progress import ProgressTail
from escalade.storage.files import read_bytes, storage, write_bytes
from escalade.storage.lock import FolderLock
from escalade.storage.run_folder import RunFolder
from escalade.support.cores import cores
from escalade.support.interrupts import INTERRUPTED, Interrupts
from escalade.support.numbers import number, whole_number

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

_POLL_SECONDS = 0.1


def sweep(
    file: str | PathLike[str],
    *,
    run_dir: str | PathLike[str] | None = None,
    jobs: int = 1,
    trials: int | None = None,
    say: Callable[[str], None] = print,
) -> SweepResult:
    """Search for options, as a file describes it; see :class:`escalade.config.sweep.SweepPlan`.

    A sweep that was interrupted or killed goes on where it was. With one job, and a budget that is not in
    seconds, the same file gives the same trials, whether it was interrupted or not.

    Args:
        file: TOML.
        run_dir: the sweep's folder; None for ``runs/sweep-NAME``, with the name of the file.
        jobs: trials that run at the same time, in processes.
        trials: how many there are to be; None for what the file says.
        say: called with a line for each trial.

    Raises:
        InputError: something in the file is wrong, or the folder is another sweep's.
    """
    whole_number(jobs, "`jobs`", 1)
    plan = read_sweep(file, trials)
    folder = Path("runs") / f"sweep-{Path(file).stem}" if run_dir is None else Path(run_dir)
    with storage(folder, "choose another `run_dir`"):
        folder.mkdir(parents=True, exist_ok=True)
    kept = folder / PLAN
    with RunFolder(folder).locked():
        if kept.exists():
            before = vars(read_sweep(kept, plan.trials))
            if others := [name for name, value in vars(plan).items() if value != before[name]]:
                raise InputError(f"{folder} holds a sweep with other {others[0]}: name another `run_dir`")
        elif any(folder.glob("**/config.toml")):
            raise InputError(f"{folder} holds runs, and is not the folder of a sweep: name another `run_dir`")
        else:
            write_bytes(kept, read_bytes(Path(file)))
        result = SweepResult(folder, plan, open_study(plan, folder))
        interrupted = _Lead(result, jobs, say).run()
        return replace(result, interrupted=interrupted, files=tuple(write_results(result)))


def part_of(config: Config, row: Row) -> int:
    """The parts of its budget that a run has spent after the generation of this row."""
    spent = {"generations": row.generation, "env_steps": row.env_steps or 0, "seconds": row.seconds}
    limits = {name: limit for name in BUDGETS if (limit := getattr(config, name)) is not None}
    return int(PARTS * max(spent[name] / limit for name, limit in limits.items()))


class _Interrupted(BaseException):
    """Leaves a trial to go on later: of an Exception, Optuna would write that the trial failed."""


class _Lead:
    """Optuna's objective: a trial's runs one after the other, each a command of its own."""

    def __init__(self, result: SweepResult, jobs: int, say: Callable[[str], None]) -> None:
        self._result, self._plan, self._study, self._say = result, result.plan, result.study, say
        states = result.states()
        self._done = states["complete"] + states["pruned"] + states["fail"]
        self._jobs = max(1, min(jobs, self._plan.trials - self._done))
        self._interrupts, self._suggesting = Interrupts(), Lock()

    def run(self) -> bool:
        """Run the trials that are missing; whether that was interrupted."""
        from optuna.trial import TrialState

        missing = self._plan.trials - self._done
        if missing <= 0:
            return False
        done = f", {self._done} of them done already" if self._done else ""
        self._say(f"{self._plan.trials} trials in {self._result.folder}{done}")
        for begun in self._study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
            self._study._storage.set_trial_state_values(begun._trial_id, TrialState.WAITING)  # asked first
        with self._interrupts:
            try:
                how: dict[str, Any] = {"catch": (EscaladeError,), "callbacks": [self._told]}
                self._study.optimize(self._value, missing, n_jobs=self._jobs, **how)
            except _Interrupted:
                return True
        return False

    def _value(self, trial: Trial) -> float:
        """The mean return of the trial's runs."""
        try:
            with self._suggesting:
                config = self._plan.config(self._suggest(trial))
            results: list[float] = []
            for folder, seed in zip(self._result.runs(trial.number), self._plan.seeds, strict=True):
                if results:
                    self._judge(trial, PARTS * len(results), fmean(results))
                results.append(self._run(trial, config.replace(seed=seed), folder, results))
            return fmean(results)
        except EscaladeError as problem:
            trial.set_user_attr("problem", str(problem))
            raise

    def _suggest(self, trial: Trial) -> dict[str, Any]:
        """Suggest what the trial lacks: one that was begun earlier has its values already.

        A value is drawn from the sweep's seed, the trial's number and the option's name, so that a sweep
        that was killed and started again suggests what it would have suggested.
        """
        from optuna.samplers import RandomSampler, TPESampler

        sampler = TPESampler if self._plan.sampler == "tpe" else RandomSampler
        for name, distribution in self._plan.space.items():
            address = f"{self._plan.sampler_seed}/{trial.number}/{name}".encode()
            seed = int.from_bytes(hashlib.sha256(address).digest()[:4], "big")
            self._study.sampler = sampler(seed=seed)
            trial._suggest(name, distribution)
        return trial.params

    def _run(self, trial: Trial, config: Config, folder: Path, before: list[float]) -> float:
        """Have a run, report its evaluations together with the runs ``before`` it; its last evaluation."""
        while FolderLock(folder).look()[0] == "held":  # by a run that outlived a killed sweep
            self._wait()
        (planned,) = plan_series({"trial": config}, [config.seed], folder.parent)
        job = None if planned.done else start_job(planned, max(1, cores() // self._jobs))
        run, part, latest = RunFolder(folder), PARTS * len(before), math.nan
        tail = ProgressTail(run.progress)
        try:
            ended = False
            while not ended:
                ended = job is None or job.process.poll() is not None  # first: then it has all of its rows
                for row in tail.rows():
                    if row.eval_return_mean is not None and math.isfinite(row.eval_return_mean):
                        latest = row.eval_return_mean
                    passed = PARTS * len(before) + min(part_of(config, row), PARTS - 1)
                    while part < passed and math.isfinite(latest):
                        part += 1  # at the end of the budget, the run's result counts
                        self._judge(trial, part, fmean([*before, latest]))
                if not ended:
                    self._wait()
            if job is not None:
                check_job(job)
        finally:
            end_jobs([] if job is None else [job])
        summary = run.read_summary()
        if job is not None and job.process.returncode == INTERRUPTED:  # by someone else
            self._interrupts.requested = True
            self._wait()
        if summary["eval_return_mean"] is None:
            raise InputError(f"{folder}: its last evaluation is not a number")
        return float(summary["eval_return_mean"])

    def _wait(self) -> None:
        if self._interrupts.requested:
            raise _Interrupted
        time.sleep(_POLL_SECONDS)

    def _judge(self, trial: Trial, part: int, value: float) -> None:
        """Report a value, and raise Optuna's TrialPruned where the trial is to end."""
        from optuna import TrialPruned

        known = self._study.get_trials(deepcopy=False)[trial.number].intermediate_values
        if part not in known:
            trial.report(value, part)
        if part >= max(known, default=0) and trial.should_prune():  # of the last one, a verdict may be lost
            raise TrialPruned

    def _told(self, study: Study, trial: FrozenTrial) -> None:
        """Say how a trial has ended."""
        how = f"failed: {trial.user_attrs.get('problem')}"
        if trial.state.name == "COMPLETE":
            best = study.best_trial
            record = "the best so far" if best.number == trial.number else f"best {number(best.value)}"
            how = f"return {number(trial.value)}, {record}"
        elif trial.last_step is not None and trial.state.name == "PRUNED":
            part = trial.last_step / (PARTS * len(self._plan.seeds))
            reached = number(trial.intermediate_values[trial.last_step])
            how = f"pruned after {part:.0%} of the budget, return {reached}"
        self._say(f"trial {trial.number}: {how}  {assignments(trial.params, trial.params)}")
