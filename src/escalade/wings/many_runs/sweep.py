"""Sweeps: search for options with Optuna. Trials are ordinary runs that report their evaluations to it."""

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
from escalade.wings.many_runs.runner import run_series, share_cores
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
    log: Callable[[str], None] = print,
) -> Study:
    """Search for options as defined in a file; see :class:`escalade.wings.many_runs.sweep_plan.SweepPlan`.

    An interrupted or killed sweep continues when called again. With one job and a budget that is not in
    seconds, the same file always gives the same trials, even after interruptions.

    Args:
        file: path of a TOML file.
        run_dir: folder of the sweep; None for ``runs/sweep-NAME``, after the name of the file.
        jobs: number of simultaneous trials. If above 1, they run in threads with at least one worker process
            each.
        trials: total number of trials; None for that of the file.
        log: called with a line for each trial and for the results.

    Returns:
        Optuna's study, with ``trials`` and ``best_trial``, which also works with Optuna's plots.

    Raises:
        InputError: the file has an error, the folder belongs to a different sweep, or every trial failed.
        KeyboardInterrupt: the sweep was interrupted; its state is saved.
    """
    whole_number(jobs, "`jobs`", 1)
    plan = read_sweep(file, trials)
    fix = "choose a different `run_dir`"
    folder = path_of("runs") / f"sweep-{Path(file).stem}" if run_dir is None else path_of(run_dir, fix)
    folder = folder.absolute()  # a simulator may change the working directory
    with storage(folder, fix):
        folder.mkdir(parents=True, exist_ok=True)
    copy = folder / PLAN
    with RunFolder(folder).locked():
        if copy.exists():
            before = vars(read_sweep(copy, plan.trials))
            if others := [name for name, value in vars(plan).items() if value != before[name]]:
                raise InputError(f"{folder} contains a sweep with different {others[0]}; {fix}")
        elif any(folder.glob("**/config.toml")):
            raise InputError(f"{folder} contains runs but is not the folder of a sweep; {fix}")
        else:
            write_bytes(copy, read_bytes(Path(file)))
        study = open_study(plan, folder)
        try:
            _Runner(plan, folder, study, jobs, log).run()
        except KeyboardInterrupt:
            write_results(plan, folder, study, log)
            log("interrupted; run the same command again to continue")
            raise
        write_results(plan, folder, study, log)
        if best_of(study) is None:
            raise InputError(f"no trial of {folder} completed; see its trials.csv")
        return study


def load_sweep(folder: str | PathLike[str]) -> Study:
    """Load Optuna's study of the sweep in a folder.

    Raises:
        InputError: the folder is not a sweep, the sweep is running, or its files are damaged.
    """
    place = path_of(folder)
    if not (place / PLAN).is_file():
        raise InputError(f"{place} is not the folder of a sweep: it has no {PLAN}")
    with RunFolder(place).locked():
        return open_study(read_sweep(place / PLAN), place)


def collection_of(place: Path) -> Collection:
    """Read the results of the sweep in ``place``, for a report.

    Raises:
        InputError: the sweep is running, its files are damaged, or no trial is complete.
    """
    study = load_sweep(place)
    if (best := best_of(study)) is None:
        raise InputError(f"{place}: no trial of this sweep is complete; continue it with 'escalade sweep'")
    facts = {**states(study), "best trial": best.number, "its return": number(best.value)}
    texts, chosen = ({key: str(one) for key, one in table.items()} for table in (facts, best.params))
    drawn = [(title, place / name) for name, (title, _) in PICTURES.items() if (place / name).is_file()]
    return Collection(place.resolve().name, trial_folder(place, best.number), texts, chosen, drawn)


def part_of(config: Config, row: Row) -> int:
    """Return the number of parts of its budget that a run has spent after the generation of this row."""
    spent = {"generations": row.generation, "env_steps": row.env_steps or 0, "seconds": row.seconds}
    limits = {name: limit for name in BUDGETS if (limit := getattr(config, name)) is not None}
    return int(PARTS * max(spent[name] / limit for name, limit in limits.items()))


class _Runner:
    """Runs the trials that Optuna suggests, and reports the results to it."""

    def __init__(
        self, plan: SweepPlan, folder: Path, study: Study, jobs: int, log: Callable[[str], None]
    ) -> None:
        self._plan, self._folder, self._study, self._log = plan, folder, study, log
        self._done = sum(trial.state.is_finished() for trial in study.get_trials(deepcopy=False))
        self._jobs = max(1, min(jobs, self._plan.trials - self._done))
        self._interrupts, self._asking = Interrupts(), Lock()

    def run(self) -> None:
        """Run the missing trials."""
        from optuna.trial import TrialState

        missing = self._plan.trials - self._done
        if missing <= 0:
            return
        done = f", {self._done} of them already done" if self._done else ""
        self._log(f"{self._plan.trials} trials in {self._folder}{done}")
        for begun in self._study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
            self._study._storage.set_trial_state_values(begun._trial_id, TrialState.WAITING)
        with self._interrupts, storage(self._folder):  # Optuna's journal may find the disk full
            if self._jobs == 1:  # in this thread, which receives signals
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
        """Run one trial. After an interrupt or a storage failure it is left open, and continues later."""
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
        self._print(self._study.tell(trial, value, state))

    def _value(self, trial: Trial, params: dict[str, Any]) -> float:
        """Run the trial's runs, and return their mean return."""
        config = trial_config(self._plan, params)
        if self._jobs > 1:  # same results; without worker processes, all trials would share this process
            config = share_cores(config.replace(workers=config.workers or None), self._jobs)
        results: list[float] = []
        for seed in self._plan.seeds:
            if self._interrupts.requested:  # while the previous run wrote its last files
                raise KeyboardInterrupt
            if results:
                self._report(trial, PARTS * len(results), fmean(results))
            results.append(self._run(trial, config.replace(seed=seed), results))
        return fmean(results)

    def _suggest(self, trial: Trial) -> dict[str, Any]:
        """Suggest the missing values of a trial.

        A trial that was started earlier has its values already. The sampler is seeded with the sweep's seed,
        the trial's number and the option's name, so that a killed and restarted sweep gets the same
        suggestions.
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
        """Run a run and return its last evaluation.

        Each evaluation is reported to Optuna as the mean with the results of the runs ``before`` it.
        """
        latest, part = math.nan, PARTS * len(before)

        def see(row: Row) -> None:
            nonlocal latest, part
            if row.eval_return_mean is not None and math.isfinite(row.eval_return_mean):
                latest = row.eval_return_mean
            # The last part is reported with the final result of the run.
            passed = PARTS * len(before) + min(part_of(config, row), PARTS - 1)
            while part < passed and math.isfinite(latest):
                part += 1
                self._report(trial, part, fmean([*before, latest]))

        def on_generation(view: View) -> None:
            if self._interrupts.requested:
                raise KeyboardInterrupt
            see(view.row)

        from escalade.training.run import Listeners

        (run,) = plan_series({"trial": config}, None, trial_folder(self._folder, trial.number))
        folder = RunFolder(run.folder)
        for row in read_rows(folder.progress) if folder.progress.exists() else ():  # of a resumed run
            see(row)
        listeners = Listeners(verbose=False, callbacks=[on_generation])
        deque(run_series([run], listeners=listeners), maxlen=0)
        summary = folder.read_summary()
        if summary["stop_reason"] == "interrupted":
            raise KeyboardInterrupt
        value = summary["eval_return_mean"]
        if value is None:
            why = "is not a number" if summary["eval_episodes"] else "did not finish within its time limit"
            raise InputError(f"{run.folder}: the last evaluation {why}")
        return float(value)

    def _report(self, trial: Trial, part: int, value: float) -> None:
        """Report a value to Optuna, and raise its TrialPruned if the trial should end."""
        from optuna import TrialPruned

        if part not in self._study.get_trials(deepcopy=False)[trial.number].intermediate_values:
            trial.report(value, part)
        if trial.should_prune():
            raise TrialPruned

    def _print(self, trial: FrozenTrial) -> None:
        """Print the result of a trial."""
        how = f"failed: {trial.user_attrs.get('problem')}"
        if trial.state.name == "COMPLETE":
            best = self._study.best_trial
            record = "the best so far" if best.number == trial.number else f"best {number(best.value)}"
            how = f"return {number(trial.value)}, {record}"
        elif trial.state.name == "PRUNED":
            part = (trial.last_step or 0) / (PARTS * len(self._plan.seeds))
            how = f"pruned after {part:.0%} of the budget, return {number(trial.value)}"
        options = ", ".join(f"{name}={shown(value)}" for name, value in trial.params.items())
        self._log(f"trial {trial.number}: {how}  {options}")
