"""Engines, which run rollouts: this process, threads of it, or supervised worker processes."""

from escalade.engines.base import (
    SHORTEST_TIMEOUT,
    Engine,
    EngineOptions,
    Factory,
    Feed,
    InProcessEngine,
    Work,
)
from escalade.engines.registry import ENGINES, start_engine

__all__ = [
    "ENGINES",
    "SHORTEST_TIMEOUT",
    "Engine",
    "EngineOptions",
    "Factory",
    "Feed",
    "InProcessEngine",
    "Work",
    "start_engine",
]
