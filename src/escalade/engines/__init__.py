"""Who runs rollouts: in this process, or in supervised worker processes."""

from escalade.engines.base import Engine, Factory, Feed, InProcessEngine, Work, start_engine

__all__ = ["Engine", "Factory", "Feed", "InProcessEngine", "Work", "start_engine"]
