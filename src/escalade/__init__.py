"""Escalade: evolution strategies for PyTorch."""

from typing import TYPE_CHECKING

from escalade.support.imports import lazy_names
from escalade.support.mkl import round_alike

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
    from escalade.wings.optimize.optimize import optimize as optimize
    from escalade.wings.optimize.optimize import optimize_batch as optimize_batch
    from escalade.wings.optimize.optimum import Optimum as Optimum
    from escalade.wings.optimize.space import EarlierPoints as EarlierPoints
    from escalade.wings.publish.export import export as export

round_alike()

# Imported when first used: most need torch.
_HOMES = {
    "EarlierPoints": "escalade.wings.optimize.space",
    "EngineFailure": "escalade.errors",
    "EnvironmentFailure": "escalade.errors",
    "EscaladeError": "escalade.errors",
    "Evolution": "escalade.training.evolution",
    "InputError": "escalade.errors",
    "Optimum": "escalade.wings.optimize.optimum",
    "Policy": "escalade.policies.policy",
    "Recorder": "escalade.recorders",
    "Row": "escalade.recorders",
    "Run": "escalade.api.train",
    "StorageFailure": "escalade.errors",
    "View": "escalade.training.rows",
    "check": "escalade.wings.checking.check",
    "compare": "escalade.wings.analysis.compare",
    "evaluate": "escalade.api.evaluate",
    "evolve": "escalade.api.evolve",
    "export": "escalade.wings.publish.export",
    "load": "escalade.policies.policy",
    "load_evolved": "escalade.api.evolve",
    "optimize": "escalade.wings.optimize.optimize",
    "optimize_batch": "escalade.wings.optimize.optimize",
    "plot": "escalade.wings.analysis.plot",
    "render": "escalade.api.evaluate",
    "report": "escalade.wings.analysis.report",
    "resume": "escalade.api.train",
    "strategies": "escalade.strategies",
    "sweep": "escalade.wings.many_runs.sweep",
    "train": "escalade.api.train",
}
if not TYPE_CHECKING:  # type checkers would take any name for one of the package
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

__version__ = "0.2.0.dev0"

__all__ = sorted(_HOMES)
