"""Escalade: evolution strategies for PyTorch."""

from typing import TYPE_CHECKING

from escalade.errors import EngineFailure, EnvironmentFailure, EscaladeError, InputError, StorageFailure
from escalade.support.lazy import lazy_names
from escalade.support.mkl import round_alike

if TYPE_CHECKING:
    from escalade import strategies
    from escalade.api.check import check
    from escalade.api.evaluate import evaluate, render
    from escalade.api.evolve import evolve, load_evolved
    from escalade.api.run import Run
    from escalade.api.train import resume, train
    from escalade.policies.policy import Policy, load
    from escalade.recorders import Recorder, Row
    from escalade.training.evolution import Evolution
    from escalade.training.view import View
    from escalade.wings.analysis.compare import compare
    from escalade.wings.analysis.plot import plot
    from escalade.wings.analysis.report import report
    from escalade.wings.many_runs.sweep import sweep
    from escalade.wings.optimize.optimize import optimize, optimize_batch
    from escalade.wings.optimize.search import Optimum
    from escalade.wings.optimize.space import EarlierPoints
    from escalade.wings.publish.export import export

round_alike()

# Imported when first used: they need torch.
_HOMES = {
    "EarlierPoints": "escalade.wings.optimize.space",
    "Evolution": "escalade.training.evolution",
    "Optimum": "escalade.wings.optimize.search",
    "Policy": "escalade.policies.policy",
    "Recorder": "escalade.recorders",
    "Row": "escalade.recorders",
    "Run": "escalade.api.run",
    "View": "escalade.training.view",
    "check": "escalade.api.check",
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

__all__ = [
    "EarlierPoints",
    "EngineFailure",
    "EnvironmentFailure",
    "EscaladeError",
    "Evolution",
    "InputError",
    "Optimum",
    "Policy",
    "Recorder",
    "Row",
    "Run",
    "StorageFailure",
    "View",
    "check",
    "compare",
    "evaluate",
    "evolve",
    "export",
    "load",
    "load_evolved",
    "optimize",
    "optimize_batch",
    "plot",
    "render",
    "report",
    "resume",
    "strategies",
    "sweep",
    "train",
]
