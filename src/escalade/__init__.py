"""Escalade: evolution strategies for PyTorch."""

from typing import TYPE_CHECKING

from escalade.support.imports import lazy_names
from escalade.support.machine import round_alike

if TYPE_CHECKING:
    from escalade import strategies as strategies
    from escalade.api.evaluate import evaluate as evaluate
    from escalade.api.evaluate import render as render
    from escalade.api.evolve import evolve as evolve
    from escalade.api.evolve import load_evolved as load_evolved
    from escalade.api.train import Run as Run
    from escalade.api.train import resume as resume
    from escalade.api.train import train as train
    from escalade.errors import EngineFailure as EngineFailure
    from escalade.errors import EnvironmentFailure as EnvironmentFailure
    from escalade.errors import EscaladeError as EscaladeError
    from escalade.errors import InputError as InputError
    from escalade.errors import StorageFailure as StorageFailure
    from escalade.policies.policy import Policy as Policy
    from escalade.policies.policy import load as load
    from escalade.recorders import Recorder as Recorder
    from escalade.recorders import Row as Row
    from escalade.training.evolution import Evolution as Evolution
    from escalade.training.rows import View as View
    from escalade.wings.analysis.compare import compare as compare
    from escalade.wings.analysis.plot import plot as plot
    from escalade.wings.analysis.report import report as report
    from escalade.wings.checking.check import check as check
    from escalade.wings.many_runs.sweep import sweep as sweep
    from escalade.wings.optimize.constrained import Constrained as Constrained
    from escalade.wings.optimize.optimize import optimize as optimize
    from escalade.wings.optimize.optimize import optimize_batch as optimize_batch
    from escalade.wings.optimize.search import Optimum as Optimum
    from escalade.wings.optimize.space import EarlierPoints as EarlierPoints
    from escalade.wings.publish.export import export as export

round_alike()

# Imported on first use, as most of them need torch.
_PUBLIC = {
    "escalade.api.evaluate": ("evaluate", "render"),
    "escalade.api.evolve": ("evolve", "load_evolved"),
    "escalade.api.train": ("Run", "resume", "train"),
    "escalade.errors": (
        "EngineFailure",
        "EnvironmentFailure",
        "EscaladeError",
        "InputError",
        "StorageFailure",
    ),
    "escalade.policies.policy": ("Policy", "load"),
    "escalade.recorders": ("Recorder", "Row"),
    "escalade.strategies": ("strategies",),
    "escalade.training.evolution": ("Evolution",),
    "escalade.training.rows": ("View",),
    "escalade.wings.analysis.compare": ("compare",),
    "escalade.wings.analysis.plot": ("plot",),
    "escalade.wings.analysis.report": ("report",),
    "escalade.wings.checking.check": ("check",),
    "escalade.wings.many_runs.sweep": ("sweep",),
    "escalade.wings.optimize.constrained": ("Constrained",),
    "escalade.wings.optimize.optimize": ("optimize", "optimize_batch"),
    "escalade.wings.optimize.search": ("Optimum",),
    "escalade.wings.optimize.space": ("EarlierPoints",),
    "escalade.wings.publish.export": ("export",),
}
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names}
if not TYPE_CHECKING:  # with __getattr__, type checkers would accept any name
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

__version__ = "0.2.0"

__all__ = sorted(_HOMES)
