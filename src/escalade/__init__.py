"""Escalade: evolution strategies for PyTorch."""

from typing import TYPE_CHECKING

from escalade.errors import EngineFailure, EnvironmentFailure, EscaladeError, InputError, StorageFailure
from escalade.lazy import lazy_names

if TYPE_CHECKING:
    from escalade import strategies
    from escalade.evolution import Evolution, evolve, load_evolved
    from escalade.policies.policy import Policy, load
    from escalade.session import Run, evaluate, render, resume, train

# Imported when first used: they need torch.
__getattr__ = lazy_names(
    __name__,
    {
        "Evolution": "escalade.evolution",
        "Policy": "escalade.policies.policy",
        "Run": "escalade.session",
        "evaluate": "escalade.session",
        "evolve": "escalade.evolution",
        "load": "escalade.policies.policy",
        "load_evolved": "escalade.evolution",
        "render": "escalade.session",
        "resume": "escalade.session",
        "strategies": "escalade.strategies",
        "train": "escalade.session",
    },
)

__version__ = "0.1.0"

__all__ = [
    "EngineFailure",
    "EnvironmentFailure",
    "EscaladeError",
    "Evolution",
    "InputError",
    "Policy",
    "Run",
    "StorageFailure",
    "evaluate",
    "evolve",
    "load",
    "load_evolved",
    "render",
    "resume",
    "strategies",
    "train",
]
