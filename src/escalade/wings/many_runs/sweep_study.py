"""Optuna's study of a sweep: its journal and trials, and result files and pictures."""

from __future__ import annotations

import csv
import io
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escalade.config.conversion import to_toml
from escalade.config.options import Config
from escalade.errors import InputError
from escalade.media.figure import plotting_available, save_figure
from escalade.storage.files import storage, write_bytes
from escalade.support.numbers import number
from escalade.training.sources import inherited
from escalade.wings.many_runs.sweep_plan import SweepPlan

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

PARTS = 20
"""Number of parts of a run's budget. The latest evaluation is reported to Optuna after each part."""
PICTURES = {
    "history.png": ("Return of the trials", "plot_optimization_history"),
    "importance.png": ("Importance of the options", "plot_param_importances"),
    "parallel.png": ("Options and returns", "plot_parallel_coordinate"),
}
"""Pictures in a sweep's folder: title, and Optuna function that draws it."""


def open_study(plan: SweepPlan, folder: Path) -> Study:
    """Open or create the study in the sweep's folder.

    The caller holds the folder's lock.

    Raises:
        InputError: the journal is damaged.
        StorageFailure: it cannot be written.
    """
    import optuna
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pruners: dict[str, optuna.pruners.BasePruner] = {
        "median": optuna.pruners.MedianPruner(plan.startup_trials, round(plan.warmup * PARTS)),
        "halving": optuna.pruners.SuccessiveHalvingPruner(min_resource=max(1, PARTS // 8)),
        "none": optuna.pruners.NopPruner(),
    }
    path = folder / "study.jsonl"
    with storage(path), path.open("ab+") as file:  # a killed sweep may leave a partial line
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        # It may also leave Optuna's lock, for which Optuna would wait, forever if the path is relative.
        path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    try:
        journal = optuna.storages.JournalStorage(JournalFileBackend(str(path)))
        make = partial(optuna.create_study, study_name="escalade", direction="maximize", load_if_exists=True)
        return make(storage=journal, pruner=pruners[plan.pruner])
    except (ValueError, KeyError, TypeError) as problem:
        raise InputError(f"{path} is damaged ({problem}); move it away to start over") from None


def best_of(study: Study) -> FrozenTrial | None:
    """Return the complete trial with the largest value, or None if no trial is complete."""
    return study.best_trial if states(study)["complete"] else None


def states(study: Study) -> Counter[str]:
    """Count trials by state: ``complete``, ``pruned``, ``fail``, ``running`` or ``waiting``."""
    return Counter(trial.state.name.lower() for trial in study.get_trials(deepcopy=False))


def trial_folder(folder: Path, trial: int) -> Path:
    """Return the folder of the runs of the trial with this number."""
    return folder / f"trial-{trial:04d}"


def trial_config(plan: SweepPlan, params: dict[str, Any]) -> Config:
    """Return the config of the trial with these parameters."""
    return plan.config(params, inherited(plan.trial_options(params)))


def write_results(plan: SweepPlan, folder: Path, study: Study, log: Callable[[str], None]) -> None:
    """Write trials.csv and, if a trial is complete, the config of the best one and Optuna's pictures."""
    best, text = best_of(study), io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["trial", "state", "return", *plan.space])
    for trial in study.trials:
        chosen = [trial.params.get(name) for name in plan.space]
        table.writerow([trial.number, trial.state.name.lower(), trial.value, *chosen])
    write_bytes(folder / "trials.csv", text.getvalue().encode())
    if best is None:
        return
    head = f"# Trial {best.number} of {len(study.trials)}: return {number(best.value)}\n"
    options = trial_config(plan, best.params).replace(seed=plan.seeds[0])
    write_bytes(folder / "best.toml", (head + to_toml(options)).encode())
    drawn = draw_pictures(study, folder) if plotting_available() else []
    counted = ", ".join(f"{count} {state}" for state, count in states(study).items())
    log(f"{counted}; the best is trial {best.number} with return {number(best.value)}")
    log(f"files in {folder}: {', '.join(['trials.csv', 'best.toml', *drawn])}")
    log(f"'escalade train' takes the best options as its config: {folder / 'best.toml'}")


def draw_pictures(study: Study, folder: Path) -> list[str]:
    """Draw the pictures for which there are enough trials, and return their names."""
    from matplotlib import pyplot, rc_context
    from optuna.importance import PedAnovaImportanceEvaluator  # Optuna's default needs scikit-learn
    from optuna.visualization import matplotlib as plots

    values = [one.value for one in study.trials if one.state.name == "COMPLETE"]
    drawn = []
    for name, (_, draw) in PICTURES.items():
        evaluated = {"evaluator": PedAnovaImportanceEvaluator()} if name == "importance.png" else {}
        if evaluated and (len(values) < 4 or len(set(values)) == 1):
            continue  # too few for importances
        with rc_context({"savefig.bbox": "tight"}), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Optuna warns that these plots are experimental
            figure = getattr(plots, draw)(study, target_name="return", **evaluated).figure
            figure.set_size_inches(9, 5)
            save_figure(figure, folder / name)
            pyplot.close(figure)
        drawn.append(name)
    return drawn
