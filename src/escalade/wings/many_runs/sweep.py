"""A search for options by Optuna: its trials are ordinary runs, whose evaluations it is told as they come."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path
from statistics import fmean
from threading import Lock
from typing import TYPE_CHECKING, Any

from escalade.config.conversion import to_toml
from escalade.config.options import Config
from escalade.errors import EscaladeError, InputError, StorageFailure
from escalade.media.figure import plotting_available
from escalade.recorders import Row
from escalade.recorders.progress import ProgressTail
from escalade.storage.files import path_of, read_bytes, storage, write_bytes
from escalade.storage.run_folder import RunFolder
from escalade.support.interrupts import Interrupts
from escalade.support.machine import cores
from escalade.support.numbers import number, whole_number
from escalade.training.run_facts import assignments
from escalade.training.sources import inherited
from escalade.wings.many_runs.jobs import runs_here
from escalade.wings.many_runs.series import plan_series, run_series
from escalade.wings.many_runs.sweep_pictures import draw_pictures
from escalade.wings.many_runs.sweep_plan import BUDGETS, SweepPlan, read_sweep

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

    from escalade.training.view import View

PARTS = 20
"""Parts that a run's budget is cut in; after each, its latest evaluation is reported to Optuna."""
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
        study = _open_study(plan, folder)
        interrupted = _Lead(plan, folder, study, jobs, say).run()
        _write_results(plan, folder, study, say)
        if interrupted:
            say("interrupted; the same command goes on with what is missing")
            raise KeyboardInterrupt
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
        return _open_study(read_sweep(place / PLAN), place)


def best_of(study: Study) -> FrozenTrial | None:
    """The complete trial of the largest value; None where none is complete."""
    return study.best_trial if states(study)["complete"] else None


def states(study: Study) -> Counter[str]:
    """Count trials that are ``complete``, ``pruned``, ``fail``, or to go on: ``running``, ``waiting``."""
    return Counter(trial.state.name.lower() for trial in study.get_trials(deepcopy=False))


def trial_folder(folder: Path, trial: int) -> Path:
    """The folder of the runs of the trial with this number."""
    return folder / f"trial-{trial:04d}"


def part_of(config: Config, row: Row) -> int:
    """The parts of its budget that a run has spent after the generation of this row."""
    spent = {"generations": row.generation, "env_steps": row.env_steps or 0, "seconds": row.seconds}
    limits = {name: limit for name in BUDGETS if (limit := getattr(config, name)) is not None}
    return int(PARTS * max(spent[name] / limit for name, limit in limits.items()))


def _config(plan: SweepPlan, params: dict[str, Any]) -> Config:
    return plan.config(params, inherited(plan.given(params)))


class _Interrupted(BaseException):
    """Leaves a trial to go on later: of an Exception, Optuna would write that the trial failed."""


class _Lead:
    """Optuna's objective: a trial's runs, one after the other."""

    def __init__(
        self, plan: SweepPlan, folder: Path, study: Study, jobs: int, say: Callable[[str], None]
    ) -> None:
        self._plan, self._folder, self._study, self._say = plan, folder, study, say
        self._done = sum(trial.state.is_finished() for trial in study.get_trials(deepcopy=False))
        self._jobs = max(1, min(jobs, self._plan.trials - self._done))
        self._interrupts, self._suggesting = Interrupts(), Lock()
        self._raised: BaseException | None = None

    def run(self) -> bool:
        """Run the trials that are missing; True where that was interrupted."""
        from optuna.trial import TrialState

        missing = self._plan.trials - self._done
        if missing <= 0:
            return False
        done = f", {self._done} of them done already" if self._done else ""
        self._say(f"{self._plan.trials} trials in {self._folder}{done}")
        for begun in self._study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
            self._study._storage.set_trial_state_values(begun._trial_id, TrialState.WAITING)  # asked first
        with self._interrupts:
            try:
                how: dict[str, Any] = {"catch": (EscaladeError,), "callbacks": [self._told]}
                self._study.optimize(self._value, missing, n_jobs=self._jobs, **how)
                if self._raised is not None:
                    raise self._raised
            except (_Interrupted, KeyboardInterrupt):
                if isinstance(self._raised, StorageFailure):
                    raise self._raised from None
                return True
            except AssertionError as problem:  # by which Optuna hides that a trial's end could not be written
                if isinstance(problem.__context__, StorageFailure):
                    raise problem.__context__ from None
                raise
        return False

    def _value(self, trial: Trial) -> float:
        """The mean return of the trial's runs."""
        from optuna import TrialPruned

        try:
            with self._suggesting:
                config = _config(self._plan, self._suggest(trial))
            # Changes no bit; without processes, all trials would take turns in this one.
            if self._jobs > 1 and runs_here(config):
                share = max(1, cores() // self._jobs)
                config = config.replace(workers=share if config.workers is None else config.workers or 1)
            results: list[float] = []
            for seed in self._plan.seeds:
                if self._interrupts.requested:  # while the run before wrote its last files
                    raise _Interrupted
                if results:
                    self._judge(trial, PARTS * len(results), fmean(results))
                results.append(self._run(trial, config.replace(seed=seed), results))
            return fmean(results)
        except (StorageFailure, KeyboardInterrupt) as problem:  # not of the trial's options: it goes on later
            self._raised = self._raised or problem
            raise _Interrupted from problem
        except EscaladeError as problem:
            trial.set_user_attr("problem", str(problem))
            raise
        except TrialPruned:
            raise
        except BaseException as problem:
            self._raised = self._raised or problem  # Optuna asks no thread how its last trial ended
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
                raise _Interrupted
            see(view.row)

        from escalade.api.listeners import Listeners

        (run,) = plan_series({"trial": config}, None, trial_folder(self._folder, trial.number))
        folder = RunFolder(run.folder)
        for row in ProgressTail(folder.progress).rows():  # of an earlier life of the sweep
            see(row)
        listeners = Listeners(verbose=False, callbacks=[called_back])
        for ended in run_series([run], listeners=listeners):
            if ended.summary["stop_reason"] == "interrupted":
                raise _Interrupted
        summary = folder.read_summary()
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

    def _told(self, study: Study, trial: FrozenTrial) -> None:
        """Say how a trial has ended."""
        how = f"failed: {trial.user_attrs.get('problem')}"
        if trial.state.name == "COMPLETE":
            best = study.best_trial
            record = "the best so far" if best.number == trial.number else f"best {number(best.value)}"
            how = f"return {number(trial.value)}, {record}"
        elif trial.state.name == "PRUNED":
            part = (trial.last_step or 0) / (PARTS * len(self._plan.seeds))
            how = f"pruned after {part:.0%} of the budget, return {number(trial.value)}"
        self._say(f"trial {trial.number}: {how}  {assignments(trial.params, trial.params)}")


def _open_study(plan: SweepPlan, folder: Path) -> Study:
    """The study in the sweep's folder, whose lock the caller holds; made where there is none.

    Raises:
        InputError: the journal is damaged.
        StorageFailure: it cannot be written.
    """
    import optuna

    from escalade.wings.many_runs.sweep_journal import Journal

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pruners: dict[str, optuna.pruners.BasePruner] = {
        "median": optuna.pruners.MedianPruner(plan.startup_trials, round(plan.warmup * PARTS)),
        "halving": optuna.pruners.SuccessiveHalvingPruner(min_resource=max(1, PARTS // 8)),
        "none": optuna.pruners.NopPruner(),
    }
    path = folder / "study.jsonl"
    with storage(path), path.open("ab+") as file:  # a sweep that was killed may have left half a line
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        # It may also have left Optuna's lock: Optuna would wait for it, for ever where the path is relative.
        path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    try:
        journal = optuna.storages.JournalStorage(Journal(path))
        make = partial(optuna.create_study, study_name="escalade", direction="maximize", load_if_exists=True)
        return make(storage=journal, pruner=pruners[plan.pruner])
    except (ValueError, KeyError, TypeError) as problem:
        raise InputError(f"{path} is damaged ({problem}): move it away to begin anew") from None


def _write_results(plan: SweepPlan, folder: Path, study: Study, say: Callable[[str], None]) -> None:
    """Write trials.csv, best.toml and Optuna's pictures into the sweep's folder, and say so."""
    best, text = best_of(study), io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["trial", "state", "return", *plan.space])
    for trial in study.get_trials(deepcopy=False):
        chosen = [trial.params.get(name) for name in plan.space]  # suggested in the order of an earlier file
        table.writerow([trial.number, trial.state.name.lower(), trial.value, *chosen])
    write_bytes(folder / "trials.csv", text.getvalue().encode())
    if best is None:
        return
    head = f"# Trial {best.number} of {len(study.trials)}: return {best.value}\n"
    options = _config(plan, best.params).replace(seed=plan.seeds[0])
    write_bytes(folder / "best.toml", (head + to_toml(options)).encode())
    drawn = draw_pictures(study, folder) if plotting_available() else []
    counted = ", ".join(f"{count} {state}" for state, count in states(study).items())
    say(f"{counted}: the best is trial {best.number}, return {number(best.value)}")
    say(f"in {folder}: {', '.join(['trials.csv', 'best.toml', *drawn])}")
    say(f"the best options are a config of 'escalade train': {folder / 'best.toml'}")
