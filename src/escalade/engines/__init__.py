"""Engines, which run rollouts: this process, threads of it, or supervised worker processes."""

from escalade.engines.base import Engine, EngineOptions, Factory, Feed, InProcessEngine, Work
from escalade.engines.registry import ENGINES, start_engine

__all__ = [
    "ENGINES",
    "Engine",
    "EngineOptions",
    "Factory",
    "Feed",
    "InProcessEngine",
    "Work",
    "start_engine",
]
