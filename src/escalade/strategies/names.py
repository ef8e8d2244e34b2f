"""The strategies by name, without importing them: a mistyped flag should not wait for torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class StrategyName:
    """What the command line must know of a strategy before it is built."""

    title: str
    pairs: bool
    """Whether members come in mirrored pairs, so that the population must be even."""


STRATEGIES: Final[dict[str, StrategyName]] = {
    "openai-es": StrategyName("OpenAI-ES (Salimans et al. 2017)", pairs=True),
    "ars": StrategyName("Augmented Random Search (Mania et al. 2018)", pairs=True),
}
