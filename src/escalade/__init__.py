"""Escalade: evolution strategies for PyTorch."""

from typing import TYPE_CHECKING

from escalade.errors import EngineFailure, EnvironmentFailure, EscaladeError, InputError, StorageFailure
from escalade.support.lazy import lazy_names
from escalade.support.mkl import round_alike

if TYPE_CHECKING:
    from escalade import strategies
    from escalade.api.check import check
    from escalade.api.compare import compare
    from escalade.api.evaluate import evaluate, render
    from escalade.api.evolve import evolve, load_evolved
    from escalade.api.export import export
    from escalade.api.optimize import optimize
    from escalade.api.optimize_batch import optimize_batch
    from escalade.api.plot import plot
    from escalade.api.report import report
    from escalade.api.run import Run
    from escalade.api.sweep import sweep
    from escalade.api.train import resume, train
    from escalade.policies.policy import Policy, load
    from escalade.recorders import Recorder, Row
    from escalade.strategies.earlier import EarlierPoints
    from escalade.strategies.optimum import Optimum
    from escalade.training.evolution import Evolution
    from escalade.training.view import View

round_alike()

# Imported when first used: they need torch.
_HOMES = {
    "EarlierPoints": "escalade.strategies.earlier",
    "Evolution": "escalade.training.evolution",
    "Optimum": "escalade.strategies.optimum",
    "Policy": "escalade.policies.policy",
    "Recorder": "escalade.recorders",
    "Row": "escalade.recorders",
    "Run": "escalade.api.run",
    "View": "escalade.training.view",
    "check": "escalade.api.check",
    "compare": "escalade.api.compare",
    "evaluate": "escalade.api.evaluate",
    "evolve": "escalade.api.evolve",
    "export": "escalade.api.export",
    "load": "escalade.policies.policy",
    "load_evolved": "escalade.api.evolve",
    "optimize": "escalade.api.optimize",
    "optimize_batch": "escalade.api.optimize_batch",
    "plot": "escalade.api.plot",
    "render": "escalade.api.evaluate",
    "report": "escalade.api.report",
    "resume": "escalade.api.train",
    "strategies": "escalade.strategies",
    "sweep": "escalade.api.sweep",
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
