"""How the centre moves: ask/tell strategies, one file each."""

from escalade.strategies.ars import ARS
from escalade.strategies.base import GaussianStrategy, Result, Strategy
from escalade.strategies.cem import CEM
from escalade.strategies.clipup import ClipUp
from escalade.strategies.cma import CMAES
from escalade.strategies.openai_es import OpenAIES
from escalade.strategies.pgpe import PGPE
from escalade.strategies.sep_cma import SepCMAES
from escalade.strategies.simple_gaussian import SimpleGaussian
from escalade.strategies.snes import SNES

__all__ = [
    "ARS",
    "CEM",
    "CMAES",
    "PGPE",
    "SNES",
    "ClipUp",
    "GaussianStrategy",
    "OpenAIES",
    "Result",
    "SepCMAES",
    "SimpleGaussian",
    "Strategy",
]
