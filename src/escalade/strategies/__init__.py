"""How the centre moves: ask/tell strategies, one file each."""

from typing import TYPE_CHECKING

from escalade.support.lazy import lazy_names

if TYPE_CHECKING:
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

# Imported when first used, because they need torch: a mistyped flag should not wait for it.
__getattr__ = lazy_names(
    __name__,
    {
        "ARS": "escalade.strategies.ars",
        "CEM": "escalade.strategies.cem",
        "CMAES": "escalade.strategies.cma",
        "ClipUp": "escalade.strategies.clipup",
        "GaussianStrategy": "escalade.strategies.base",
        "OpenAIES": "escalade.strategies.openai_es",
        "PGPE": "escalade.strategies.pgpe",
        "Result": "escalade.strategies.base",
        "SNES": "escalade.strategies.snes",
        "SepCMAES": "escalade.strategies.sep_cma",
        "SimpleGaussian": "escalade.strategies.simple_gaussian",
        "Strategy": "escalade.strategies.base",
    },
)

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
