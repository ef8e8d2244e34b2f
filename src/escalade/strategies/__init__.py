"""Strategies with ask and tell, one file each, listed in :mod:`escalade.strategies.registry`."""

from typing import TYPE_CHECKING

from escalade.strategies.registry import STRATEGIES
from escalade.support.lazy import lazy_names

if TYPE_CHECKING:
    from escalade.perturbation import DensePopulation as DensePopulation
    from escalade.strategies.base import Strategy as Strategy
    from escalade.strategies.gaussian import GaussianStrategy as GaussianStrategy
    from escalade.strategies.guided_es import GuidedES as GuidedES
    from escalade.strategies.optimizers import ClipUp as ClipUp
    from escalade.strategies.persistent_es import PersistentES as PersistentES
    from escalade.strategies.registry import *
    from escalade.strategies.result import Result as Result

# Imported when first used, because they need torch: a mistyped flag should not wait for it.
_HOMES = {entry.class_name: entry.home.partition(":")[0] for entry in STRATEGIES.values()} | {
    "ClipUp": "escalade.strategies.optimizers",
    "DensePopulation": "escalade.perturbation",
    "GaussianStrategy": "escalade.strategies.gaussian",
    "GuidedES": "escalade.strategies.guided_es",
    "PersistentES": "escalade.strategies.persistent_es",
    "Result": "escalade.strategies.result",
    "Strategy": "escalade.strategies.base",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

__all__ = sorted(_HOMES)
