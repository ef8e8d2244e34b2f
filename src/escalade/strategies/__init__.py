"""Ask-and-tell search strategies, one file each, listed in :mod:`escalade.strategies.registry`."""

from typing import TYPE_CHECKING

from escalade.strategies.registry import STRATEGIES
from escalade.support.imports import lazy_names

if TYPE_CHECKING:
    from escalade.perturbation import DensePopulation as DensePopulation
    from escalade.strategies.ars import ARS as ARS
    from escalade.strategies.base import Strategy as Strategy
    from escalade.strategies.canonical_es import CanonicalES as CanonicalES
    from escalade.strategies.cem import CEM as CEM
    from escalade.strategies.cma import CMAES as CMAES
    from escalade.strategies.cr_fm_nes import CRFMNES as CRFMNES
    from escalade.strategies.deep_ga import DeepGA as DeepGA
    from escalade.strategies.des import DES as DES
    from escalade.strategies.gaussian import GaussianStrategy as GaussianStrategy
    from escalade.strategies.les import LES as LES
    from escalade.strategies.lm_ma import LMMAES as LMMAES
    from escalade.strategies.ma import MAES as MAES
    from escalade.strategies.openai_es import OpenAIES as OpenAIES
    from escalade.strategies.optimizers import ClipUp as ClipUp
    from escalade.strategies.pgpe import PGPE as PGPE
    from escalade.strategies.result import Result as Result
    from escalade.strategies.rm_es import RMES as RMES
    from escalade.strategies.sep_cma import SepCMAES as SepCMAES
    from escalade.strategies.simple_gaussian import SimpleGaussian as SimpleGaussian
    from escalade.strategies.snes import SNES as SNES
    from escalade.strategies.vd_cma import VDCMA as VDCMA
    from escalade.strategies.xnes import XNES as XNES
    from escalade.wings.own_loops.guided_es import GuidedES as GuidedES
    from escalade.wings.own_loops.persistent_es import PersistentES as PersistentES

# Imported on first use, because they need torch: the error for a mistyped flag should not wait for it.
_HOMES = {entry.class_name: entry.home.partition(":")[0] for entry in STRATEGIES.values()} | {
    "ClipUp": "escalade.strategies.optimizers",
    "DensePopulation": "escalade.perturbation",
    "GaussianStrategy": "escalade.strategies.gaussian",
    "GuidedES": "escalade.wings.own_loops.guided_es",
    "PersistentES": "escalade.wings.own_loops.persistent_es",
    "Result": "escalade.strategies.result",
    "Strategy": "escalade.strategies.base",
}
if not TYPE_CHECKING:  # otherwise type checkers would accept any name
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

__all__ = sorted(_HOMES)
