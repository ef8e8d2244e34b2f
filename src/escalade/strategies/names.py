"""The strategies by name, without importing them: a mistyped flag should not wait for torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class StrategyName:
    """What the command line must know of a strategy before it is built."""

    title: str
    paper: str
    options: frozenset[str] = frozenset()
    """Which of :data:`STRATEGY_OPTIONS` it takes."""
    pairs: bool = False
    """Whether members come in mirrored pairs, so that the population must be even."""
    grows: bool = False
    """Whether a generation can be given more members than it began with."""
    adapts_sigma: bool = False
    """Whether ``sigma`` is only the first value, which the strategy then adapts."""
    smallest: int = 2
    """The smallest population it can work with."""


STRATEGY_OPTIONS: Final = ("lr", "optimizer", "weight_decay", "shaping", "top_directions")
"""The config's options that only some strategies take."""

_GRADIENT = frozenset({"lr", "optimizer", "weight_decay", "shaping"})
_LR = frozenset({"lr"})

STRATEGIES: Final[dict[str, StrategyName]] = {
    "openai-es": StrategyName("OpenAI-ES", "Salimans et al. 2017", _GRADIENT, pairs=True, grows=True),
    "ars": StrategyName(
        "Augmented Random Search", "Mania et al. 2018", _LR | {"top_directions"}, pairs=True, grows=True
    ),
    "pgpe": StrategyName("PGPE", "Sehnke et al. 2010", _GRADIENT, pairs=True, grows=True, adapts_sigma=True),
    "snes": StrategyName(
        "Separable NES", "Schaul et al. 2011", _LR | {"shaping"}, grows=True, adapts_sigma=True
    ),
    "simple-gaussian": StrategyName(
        "Simple Gaussian ES", "Rechenberg 1973", _LR, adapts_sigma=True, smallest=4
    ),
    "cem": StrategyName("Cross-entropy method", "de Boer et al. 2005", _LR, adapts_sigma=True, smallest=10),
    "sep-cma-es": StrategyName("Separable CMA-ES", "Ros and Hansen 2008", adapts_sigma=True, smallest=4),
    "cma-es": StrategyName("CMA-ES", "Hansen 2016", adapts_sigma=True, smallest=4),
}
