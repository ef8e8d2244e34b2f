"""Optuna's part of a sweep: what it suggests, what it ends, and the file in which it keeps that."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escalade.api.sweep.trial import PARTS
from escalade.config.sweep import Choices, Pruning, SweepPlan
from escalade.errors import InputError
from escalade.storage.files import storage
from escalade.support.installing import install

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.distributions import BaseDistribution
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.storages.journal import JournalFileSymlinkLock
    from optuna.trial import FrozenTrial

JOURNAL = "study.jsonl"
"""Optuna's journal, lines of JSON. Its other file storages would do, but for seconds of start-up (SQLite)."""

_NAME = "escalade"


def open_study(plan: SweepPlan, folder: Path) -> Study:
    """The study in the sweep's folder, made where there is none.

    Whoever calls holds the folder's lock.

    Raises:
        InputError: Optuna is missing, or the journal is damaged.
    """
    try:
        import optuna
    except ImportError:
        raise InputError(f"sweeps need Optuna: {install('sweep')}") from None
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path = folder / JOURNAL
    with storage(path):
        _drop_half_line(path)
    try:
        return optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(path), lock_obj=_no_lock(path))),
            study_name=_NAME,
            direction="maximize",
            load_if_exists=True,
            sampler=make_sampler(plan),
            pruner=_pruner(plan.pruning),
        )
    except (ValueError, KeyError, TypeError) as problem:
        raise InputError(f"{path} is damaged ({problem}): move it away to begin anew") from None


def distributions(plan: SweepPlan) -> dict[str, BaseDistribution]:
    """The space in Optuna's words; a choice goes by the text that stands for it."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    found: dict[str, BaseDistribution] = {}
    for name, of in plan.space.items():
        if isinstance(of, Choices):
            found[name] = CategoricalDistribution(list(of.values))
        elif of.whole:
            found[name] = IntDistribution(int(of.low), int(of.high), log=of.log, step=int(of.step or 1))
        else:
            found[name] = FloatDistribution(of.low, of.high, log=of.log, step=of.step)
    return found


def chosen(plan: SweepPlan, params: dict[str, Any]) -> dict[str, Any]:
    """What a trial's parameters say, as options."""
    spaces = ((name, plan.space[name], value) for name, value in params.items())
    return {name: of.values[value] if isinstance(of, Choices) else value for name, of, value in spaces}


def again(study: Study, frozen: FrozenTrial) -> Trial:
    """A trial that was begun and not ended, to report to."""
    from optuna.trial import Trial

    return Trial(study, frozen._trial_id)


def importances(study: Study) -> dict[str, float]:
    """How much each option of the space matters, largest first, summing to 1; empty where that is unknown.

    PED-ANOVA (Watanabe et al. 2023, arXiv 2304.10255), among the trials that ran to their end.
    """
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
    from optuna.trial import TrialState

    values = [trial.value for trial in study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])]
    if len(values) < 4 or len(set(values)) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return dict(get_param_importances(study, evaluator=PedAnovaImportanceEvaluator()))
        except (ValueError, RuntimeError, ZeroDivisionError):  # too few trials, or all alike
            return {}


def make_sampler(plan: SweepPlan) -> BaseSampler:
    """A sampler whose numbers are a function of the sweep's seed, the trial and the option alone.

    So a sweep that was killed and started again suggests what it would have suggested.
    """
    from optuna.samplers import BaseSampler, RandomSampler, TPESampler

    kinds: dict[str, Callable[[int], BaseSampler]] = {
        "tpe": lambda seed: TPESampler(seed=seed),
        "random": lambda seed: RandomSampler(seed=seed),
    }
    make = kinds[plan.sampler]

    class Addressed(BaseSampler):
        def _of(self, trial: FrozenTrial, name: str = "") -> BaseSampler:
            address = f"{plan.sampler_seed}/{trial.number}/{name}".encode()
            return make(int.from_bytes(hashlib.sha256(address).digest()[:4], "big"))

        def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, Any]:
            return self._of(trial).infer_relative_search_space(study, trial)

        def sample_relative(
            self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
        ) -> dict[str, Any]:
            return self._of(trial).sample_relative(study, trial, search_space)

        def sample_independent(
            self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
        ) -> Any:
            return self._of(trial, param_name).sample_independent(
                study, trial, param_name, param_distribution
            )

        def after_trial(
            self, study: Study, trial: FrozenTrial, state: Any, values: Sequence[float] | None
        ) -> None:
            self._of(trial).after_trial(study, trial, state, values)

    return Addressed()


def _pruner(pruning: Pruning) -> BasePruner:
    from optuna.pruners import MedianPruner, NopPruner, SuccessiveHalvingPruner

    if pruning.pruner == "none":
        return NopPruner()
    if pruning.pruner == "halving":
        return SuccessiveHalvingPruner(min_resource=max(1, PARTS // 8))
    return MedianPruner(pruning.startup_trials, n_warmup_steps=round(pruning.warmup * PARTS))


def _no_lock(path: Path) -> JournalFileSymlinkLock:
    """No lock: the sweep's folder is locked, and not by a file that would outlive a killed process."""
    from optuna.storages.journal import JournalFileSymlinkLock

    class NoLock(JournalFileSymlinkLock):
        def acquire(self) -> bool:
            return True

        def release(self) -> None:
            """Nothing is held."""

    return NoLock(str(path))


def _drop_half_line(path: Path) -> None:
    """Drop what a killed sweep left half written."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        data = file.read()
        file.truncate(data.rfind(b"\n") + 1)
        file.flush()
        os.fsync(file.fileno())
