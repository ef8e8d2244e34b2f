"""The result of a sweep: Optuna's study in its folder, and the files that are written from it."""

from __future__ import annotations

import csv
import io
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from escalade.config.conversion import to_toml
from escalade.config.sweep import SweepPlan, read_sweep
from escalade.errors import InputError
from escalade.media.figure import plotting_available, save_figure
from escalade.media.report import Swept
from escalade.storage.files import storage, write_bytes
from escalade.storage.run_folder import RunFolder
from escalade.support.numbers import number

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

PARTS = 20
"""Parts that a run's budget is cut in; after each, its latest evaluation is reported to Optuna."""
PLAN = "sweep.toml"
PICTURES = {
    "history.png": ("Return of the trials", "plot_optimization_history"),
    "importance.png": ("How much each option matters", "plot_param_importances"),
    "parallel.png": ("Options and returns", "plot_parallel_coordinate"),
}
"""Pictures in a sweep's folder: their titles, and the functions of Optuna that draw them."""


@dataclass(frozen=True)
class SweepResult:
    """The trials of a sweep so far, and the files that it wrote."""

    folder: Path
    plan: SweepPlan
    study: Study
    """Optuna's own, for its pictures and its importances too."""
    interrupted: bool = False
    """True where the sweep ended before all of its trials had."""
    files: tuple[Path, ...] = ()
    """The files that it wrote into its folder at its end."""

    @property
    def trials(self) -> list[FrozenTrial]:
        """Optuna's trials in their order, with ``number``, ``state``, ``value`` and ``params``."""
        return self.study.get_trials(deepcopy=False)

    @property
    def best(self) -> FrozenTrial | None:
        """The complete trial of the largest value; None where none is complete."""
        return self.study.best_trial if self.states()["complete"] else None

    def states(self) -> Counter[str]:
        """Count trials that are ``complete``, ``pruned``, ``fail``, or to go on: ``running``, ``waiting``."""
        return Counter(trial.state.name.lower() for trial in self.trials)

    def runs(self, trial: int) -> list[Path]:
        """The run folders of the trial with this number, one for each seed."""
        return [self.folder / f"trial-{trial:04d}" / f"seed{seed}" for seed in self.plan.seeds]


def load_sweep(folder: str | PathLike[str]) -> SweepResult:
    """Read what a sweep found from its folder.

    Raises:
        InputError: it is no sweep's folder, a sweep is at work in it, or its files are damaged.
    """
    place = Path(folder)
    if not (place / PLAN).is_file():
        raise InputError(f"{place} is not the folder of a sweep: it has no {PLAN}")
    plan = read_sweep(place / PLAN)
    with RunFolder(place).locked():
        return SweepResult(place, plan, open_study(plan, place))


def with_sweeps(places: Sequence[Path]) -> tuple[list[Path], list[Swept]]:
    """The folders, a sweep's replaced by the runs of its best trial; and what a report says of each sweep.

    Raises:
        InputError: a sweep is at work, its files are damaged, or none of its trials is complete.
    """
    runs: list[Path] = []
    sweeps: list[Swept] = []
    for place in places:
        if not (place / PLAN).is_file():
            runs.append(place)
            continue
        found = load_sweep(place)
        if (best := found.best) is None:
            raise InputError(f"{place}: no trial of this sweep has ended; go on with `escalade sweep`")
        runs += found.runs(best.number)
        facts = {**found.states(), "best trial": best.number, "its return": number(best.value)}
        shown, chosen = ({key: str(one) for key, one in table.items()} for table in (facts, best.params))
        drawn = [(title, place / name) for name, (title, _) in PICTURES.items() if (place / name).is_file()]
        sweeps.append(Swept(place.resolve().name, shown, chosen, drawn))
    return runs, sweeps


def open_study(plan: SweepPlan, folder: Path) -> Study:
    """The study in the sweep's folder, whose lock the caller holds; made where there is none.

    Raises:
        InputError: the journal is damaged.
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
    with storage(path):  # a sweep that was killed may have left Optuna's lock, and half a line
        path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
        with path.open("ab+") as file:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
    try:
        journal = optuna.storages.JournalStorage(JournalFileBackend(str(path)))
        make = partial(optuna.create_study, study_name="escalade", direction="maximize", load_if_exists=True)
        return make(storage=journal, pruner=pruners[plan.pruner])
    except (ValueError, KeyError, TypeError) as problem:
        raise InputError(f"{path} is damaged ({problem}): move it away to begin anew") from None


def write_results(result: SweepResult) -> list[Path]:
    """Write trials.csv, best.toml and Optuna's pictures into the sweep's folder; the files written."""
    best, plan, text = result.best, result.plan, io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["trial", "state", "return", *plan.space])
    for trial in result.trials:
        table.writerow([trial.number, trial.state.name.lower(), trial.value, *trial.params.values()])
    files = {"trials.csv": text.getvalue()}
    if best is not None:
        head = f"# Trial {best.number} of {len(result.trials)}: return {best.value}\n"
        files["best.toml"] = head + to_toml(plan.config(best.params).replace(seed=plan.seeds[0]))
    for name, content in files.items():
        write_bytes(result.folder / name, content.encode())
    drawn = _draw(result) if best is not None and plotting_available() else []
    return [result.folder / name for name in (*files, *drawn)]


def _draw(result: SweepResult) -> list[str]:
    """Draw what there are enough trials for; the files' names."""
    from matplotlib import pyplot, rc_context
    from optuna.importance import PedAnovaImportanceEvaluator  # Optuna's default needs scikit-learn
    from optuna.visualization import matplotlib as plots

    values, drawn = [one.value for one in result.trials if one.state.name == "COMPLETE"], []
    for name, (_, draw) in PICTURES.items():
        evaluated = {"evaluator": PedAnovaImportanceEvaluator()} if name == "importance.png" else {}
        if evaluated and (len(values) < 4 or len(set(values)) == 1):
            continue  # so few say nothing of importance
        with rc_context({"savefig.bbox": "tight"}), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are experimental
            figure = getattr(plots, draw)(result.study, target_name="return", **evaluated).figure
            figure.set_size_inches(9, 5)
            save_figure(figure, result.folder / name)
            pyplot.close(figure)
        drawn.append(name)
    return drawn
