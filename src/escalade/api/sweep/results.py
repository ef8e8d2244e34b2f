"""What a sweep found: read from its folder, by commands and by reports."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escalade.api.sweep.study import chosen, importances, open_study
from escalade.config.conversion import to_toml
from escalade.config.sweep import SweepPlan, read_sweep
from escalade.errors import InputError
from escalade.storage.files import write_bytes
from escalade.storage.lock import FolderLock

if TYPE_CHECKING:
    from optuna import Study

PLAN, BEST, TABLE = "sweep.toml", "best.toml", "trials.csv"
HISTORY, PARALLEL, IMPORTANCE = "history.png", "parallel.png", "importance.png"
"""Files of a sweep's folder."""

_STATES = {"COMPLETE": "ended", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "begun", "WAITING": "begun"}


@dataclass(frozen=True)
class TrialFacts:
    """One trial."""

    number: int
    state: str
    """``ended``, ``pruned``, ``failed``, or ``begun`` where it is to go on."""
    value: float | None
    """The mean of its runs' last evaluations; None where it has not ended."""
    params: dict[str, Any]
    """Its choice of each option: a number, or the text of a listed value."""
    parts: dict[int, float]
    """What it reported on its way, by the part of the budget, of
    :data:`escalade.api.sweep.trial.PARTS` a run."""


@dataclass(frozen=True)
class SweepResult:
    """What a sweep has found so far."""

    folder: Path
    plan: SweepPlan
    trials: tuple[TrialFacts, ...]
    importances: dict[str, float]
    """How much each option matters, summing to 1, largest first; empty where that is unknown yet."""

    @property
    def best(self) -> TrialFacts | None:
        """The ended trial of the largest value, the first of several; None where none has ended."""
        ended = [trial for trial in self.trials if trial.state == "ended" and trial.value is not None]
        return max(ended, key=lambda trial: trial.value or 0.0, default=None)

    def runs(self, trial: TrialFacts) -> list[Path]:
        """The run folders of a trial."""
        return trial_folders(self.folder, self.plan, trial.number)


def trial_folders(folder: Path, plan: SweepPlan, number: int) -> list[Path]:
    """The run folders of the trial with this number: one for each seed."""
    place = folder / f"trial-{number:04d}"
    return [place] if len(plan.seeds) == 1 else [place / f"seed{seed}" for seed in plan.seeds]


def load_sweep(folder: str | PathLike[str]) -> SweepResult:
    """Read what a sweep found from its folder.

    Raises:
        InputError: it is no sweep's folder, a sweep is at work in it, or its files are damaged.
    """
    place = Path(folder)
    if not (place / PLAN).is_file():
        raise InputError(f"{place} is not the folder of a sweep: it has no {PLAN}")
    plan = read_sweep(place / PLAN)
    lock = FolderLock(place)
    lock.acquire()
    try:
        return result_of(open_study(plan, place), plan, place)
    finally:
        lock.release()


def result_of(study: Study, plan: SweepPlan, folder: Path) -> SweepResult:
    """What a study holds."""
    trials = tuple(
        TrialFacts(
            number=one.number,
            state=_STATES[one.state.name],
            value=one.value if one.state.name == "COMPLETE" else None,
            params=dict(one.params),
            parts=dict(one.intermediate_values),
        )
        for one in study.get_trials(deepcopy=False)
    )
    return SweepResult(folder, plan, trials, importances(study))


def write_results(result: SweepResult) -> list[Path]:
    """Write trials.csv, best.toml and the pictures into the sweep's folder; the files that were written."""
    from escalade.media.figure import plotting_available
    from escalade.media.sweeps import draw_history, draw_importances, draw_parallel

    written = [_write_table(result)]
    if result.best is not None:
        written.append(_write_best(result, result.best))
    if not plotting_available():
        return written
    values = [(trial.number, trial.value) for trial in result.trials if trial.value is not None]
    rows = [(trial.params, trial.value) for trial in result.trials if trial.value is not None]
    if values:
        written.append(result.folder / HISTORY)
        pruned = [one for one in result.trials if one.state == "pruned" and one.parts]
        stood = [(one.number, one.parts[max(one.parts)]) for one in pruned]
        draw_history(values, written[-1], stood)
    if len(rows) > 1:
        written.append(result.folder / PARALLEL)
        draw_parallel(rows, log_scaled(result.plan), written[-1])
    if result.importances:
        written.append(result.folder / IMPORTANCE)
        draw_importances(result.importances, written[-1])
    return written


def log_scaled(plan: SweepPlan) -> set[str]:
    """The options whose range is logarithmic."""
    return {name for name, of in plan.space.items() if getattr(of, "log", False)}


def _write_table(result: SweepResult) -> Path:
    text, names = io.StringIO(newline=""), list(result.plan.space)
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["trial", "state", "return", *names])
    for trial in result.trials:
        value = "" if trial.value is None else trial.value
        table.writerow([trial.number, trial.state, value, *(trial.params.get(name, "") for name in names)])
    path = result.folder / TABLE
    write_bytes(path, text.getvalue().encode())
    return path


def _write_best(result: SweepResult, best: TrialFacts) -> Path:
    plan, path = result.plan, result.folder / BEST
    config = plan.config(chosen(plan, best.params)).replace(seed=plan.seeds[0])
    heading = f"# Trial {best.number} of {len(result.trials)}: return {best.value}; preset {plan.preset}.\n"
    write_bytes(path, (heading + to_toml(config)).encode())
    return path
