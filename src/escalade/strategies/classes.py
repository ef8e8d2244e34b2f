"""The strategies by name, as classes. Needs torch; :mod:`escalade.strategies.names` does not."""

from __future__ import annotations

from typing import Final

from escalade.strategies.ars import ARS
from escalade.strategies.base import Strategy
from escalade.strategies.cem import CEM
from escalade.strategies.cma import CMAES
from escalade.strategies.openai_es import OpenAIES
from escalade.strategies.pgpe import PGPE
from escalade.strategies.sep_cma import SepCMAES
from escalade.strategies.simple_gaussian import SimpleGaussian
from escalade.strategies.snes import SNES

CLASSES: Final[dict[str, type[Strategy]]] = {
    "openai-es": OpenAIES,
    "ars": ARS,
    "pgpe": PGPE,
    "snes": SNES,
    "simple-gaussian": SimpleGaussian,
    "cem": CEM,
    "sep-cma-es": SepCMAES,
    "cma-es": CMAES,
}
