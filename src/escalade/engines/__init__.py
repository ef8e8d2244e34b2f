"""Engines, which run the items of jobs: this process, threads of it, worker processes, or a Ray cluster."""

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
