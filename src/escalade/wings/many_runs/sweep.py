"""A search for options by Optuna: its trials are ordinary runs, whose evaluations it is told as they come."""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from os import PathLike
from pathlib import Path
from statistics import fmean
from threading import Lock
from typing import TYPE_CHECKING, Any

from escalade.config.options import Config
from escalade.errors import EscaladeError, InputError, StorageFailure
from escalade.recorders import Row, read_rows
from escalade.storage.files import path_of, read_bytes, storage, write_bytes
from escalade.storage.run_folder import RunFolder
from escalade.support.interrupts import Interrupts
from escalade.support.numbers import number, whole_number
from escalade.support.output import shown
from escalade.training.described import Collection
from escalade.wings.many_runs.runner import run_series, sharing
from escalade.wings.many_runs.series import plan_series
from escalade.wings.many_runs.sweep_plan import BUDGETS, SweepPlan, read_sweep
from escalade.wings.many_runs.sweep_study import (
    PARTS,
    PICTURES,
    best_of,
    open_study,
    states,
    trial_config,
    trial_folder,
    write_results,
)

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

    from escalade.training.rows import View

PLAN = "sweep.toml"


def sweep(
    file: str | PathLike[str],
    *,
    run_dir: str | PathLike[str] | None = None,
    jobs: int = 1,
    trials: int | None = None,
    say: Callable[[str], None] = print,
) -> Study:
    """Search for options, as a file describes it; see :class:`escalade.wings.many_runs.sweep_plan.SweepPlan`.

    A sweep that was interrupted or killed goes on where it was. With one job, and a budget that is not in
    seconds, the same file gives the same trials, whether it was interrupted or not.

    Args:
        file: TOML.
        run_dir: the sweep's folder; None for ``runs/sweep-NAME``, with the name of the file.
        jobs: trials that run at the same time, in threads; each then has one worker process at least.
        trials: how many there are to be; None for what the file says.
        say: called with a line for each trial, and for what was found.

    Returns:
        Optuna's study, with ``trials`` and ``best_trial``, for its pictures and importances too.

    Raises:
        InputError: something in the file is wrong, the folder is another sweep's, or every trial failed.
        KeyboardInterrupt: it was interrupted; what it has so far is saved and written.
    """
    whole_number(jobs, "`jobs`", 1)
    plan = read_sweep(file, trials)
    mend = "choose another `run_dir`"
    folder = path_of("runs") / f"sweep-{Path(file).stem}" if run_dir is None else path_of(run_dir, mend)
    folder = folder.absolute()  # a simulator may change the working directory
    with storage(folder, mend):
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
        study = open_study(plan, folder)
        try:
            _Lead(plan, folder, study, jobs, say).run()
        except KeyboardInterrupt:
            write_results(plan, folder, study, say)
            say("interrupted; the same command goes on with what is missing")
            raise
        write_results(plan, folder, study, say)
        if best_of(study) is None:
            raise InputError(f"no trial of {folder} ran to its end: its trials.csv lists them")
        return study


def load_sweep(folder: str | PathLike[str]) -> Study:
    """Optuna's study of the sweep in a folder.

    Raises:
        InputError: it is no sweep's folder, a sweep is at work in it, or its files are damaged.
    """
    place = path_of(folder)
    if not (place / PLAN).is_file():
        raise InputError(f"{place} is not the folder of a sweep: it has no {PLAN}")
    with RunFolder(place).locked():
        return open_study(read_sweep(place / PLAN), place)


def collection_of(place: Path) -> Collection:
    """Read what a report shows of the sweep in ``place``.

    Raises:
        InputError: a sweep is at work in it, its files are damaged, or none of its trials is complete.
    """
    study = load_sweep(place)
    if (best := best_of(study)) is None:
        raise InputError(f"{place}: no trial of this sweep has ended; go on with 'escalade sweep'")
    facts = {**states(study), "best trial": best.number, "its return": number(best.value)}
    said, chosen = ({key: str(one) for key, one in table.items()} for table in (facts, best.params))
    drawn = [(title, place / name) for name, (title, _) in PICTURES.items() if (place / name).is_file()]
    return Collection(place.resolve().name, trial_folder(place, best.number), said, chosen, drawn)


def part_of(config: Config, row: Row) -> int:
    """The parts of its budget that a run has spent after the generation of this row."""
    spent = {"generations": row.generation, "env_steps": row.env_steps or 0, "seconds": row.seconds}
    limits = {name: limit for name in BUDGETS if (limit := getattr(config, name)) is not None}
    return int(PARTS * max(spent[name] / limit for name, limit in limits.items()))


class _Lead:
    """Asks Optuna for trials, has their runs one after the other, and tells it what came of them."""

    def __init__(
        self, plan: SweepPlan, folder: Path, study: Study, jobs: int, say: Callable[[str], None]
    ) -> None:
        self._plan, self._folder, self._study, self._say = plan, folder, study, say
        self._done = sum(trial.state.is_finished() for trial in study.get_trials(deepcopy=False))
        self._jobs = max(1, min(jobs, self._plan.trials - self._done))
        self._interrupts, self._asking = Interrupts(), Lock()

    def run(self) -> None:
        """Run the trials that are missing."""
        from optuna.trial import TrialState

        missing = self._plan.trials - self._done
        if missing <= 0:
            return
        done = f", {self._done} of them done already" if self._done else ""
        self._say(f"{self._plan.trials} trials in {self._folder}{done}")
        for begun in self._study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
            self._study._storage.set_trial_state_values(begun._trial_id, TrialState.WAITING)  # asked first
        with self._interrupts, storage(self._folder):  # Optuna's journal may find the disk full
            if self._jobs == 1:  # in this thread, the one that signals come to
                for _ in range(missing):
                    self._trial()
                return
            pool = ThreadPoolExecutor(self._jobs)
            try:
                for trial in as_completed([pool.submit(self._trial) for _ in range(missing)]):
                    trial.result()
            finally:
                pool.shutdown(cancel_futures=True)

    def _trial(self) -> None:
        """Have one trial. One that is left by an exception is not told of, and goes on later."""
        from optuna import TrialPruned
        from optuna.trial import TrialState

        with self._asking:
            trial = self._study.ask()
            params = self._suggest(trial)
        value, state = None, None
        try:
            value = self._value(trial, params)
        except TrialPruned:
            state = TrialState.PRUNED
        except StorageFailure:
            raise
        except EscaladeError as problem:  # the fault of the trial's options
            trial.set_user_attr("problem", str(problem))
            state = TrialState.FAIL
        self._told(self._study.tell(trial, value, state))

    def _value(self, trial: Trial, params: dict[str, Any]) -> float:
        """The mean return of the trial's runs."""
        config = trial_config(self._plan, params)
        if self._jobs > 1:  # changes no bit; without processes, all trials would take turns in this one
            config = sharing(config.replace(workers=config.workers or None), self._jobs)
        results: list[float] = []
        for seed in self._plan.seeds:
            if self._interrupts.requested:  # while the run before wrote its last files
                raise KeyboardInterrupt
            if results:
                self._judge(trial, PARTS * len(results), fmean(results))
            results.append(self._run(trial, config.replace(seed=seed), results))
        return fmean(results)

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

    def _run(self, trial: Trial, config: Config, before: list[float]) -> float:
        """Have a run, report its evaluations together with the runs ``before`` it; its last evaluation."""
        latest, part = math.nan, PARTS * len(before)

        def see(row: Row) -> None:
            nonlocal latest, part
            if row.eval_return_mean is not None and math.isfinite(row.eval_return_mean):
                latest = row.eval_return_mean
            # At the end of the budget, the run's result counts.
            passed = PARTS * len(before) + min(part_of(config, row), PARTS - 1)
            while part < passed and math.isfinite(latest):
                part += 1
                self._judge(trial, part, fmean([*before, latest]))

        def called_back(view: View) -> None:
            if self._interrupts.requested:
                raise KeyboardInterrupt
            see(view.row)

        from escalade.training.run import Listeners

        (run,) = plan_series({"trial": config}, None, trial_folder(self._folder, trial.number))
        folder = RunFolder(run.folder)
        for row in read_rows(folder.progress) if folder.progress.exists() else ():  # of an earlier life
            see(row)
        listeners = Listeners(verbose=False, callbacks=[called_back])
        deque(run_series([run], listeners=listeners), maxlen=0)
        summary = folder.read_summary()
        if summary["stop_reason"] == "interrupted":
            raise KeyboardInterrupt
        value = summary["eval_return_mean"]
        if value is None:
            why = "is not a number" if summary["eval_episodes"] else "had not ended when its time was up"
            raise InputError(f"{run.folder}: its last evaluation {why}")
        return float(value)

    def _judge(self, trial: Trial, part: int, value: float) -> None:
        """Report a value, and raise Optuna's TrialPruned where the trial is to end."""
        from optuna import TrialPruned

        if part not in self._study.get_trials(deepcopy=False)[trial.number].intermediate_values:
            trial.report(value, part)
        if trial.should_prune():
            raise TrialPruned

    def _told(self, trial: FrozenTrial) -> None:
        """Say how a trial has ended."""
        how = f"failed: {trial.user_attrs.get('problem')}"
        if trial.state.name == "COMPLETE":
            best = self._study.best_trial
            record = "the best so far" if best.number == trial.number else f"best {number(best.value)}"
            how = f"return {number(trial.value)}, {record}"
        elif trial.state.name == "PRUNED":
            part = (trial.last_step or 0) / (PARTS * len(self._plan.seeds))
            how = f"pruned after {part:.0%} of the budget, return {number(trial.value)}"
        options = ", ".join(f"{name}={shown(value)}" for name, value in trial.params.items())
        self._say(f"trial {trial.number}: {how}  {options}")
