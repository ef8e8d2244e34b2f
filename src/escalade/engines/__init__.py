"""Engines: run the items of a job in this process, in threads, in worker processes, or on a Ray cluster."""

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
