"""The engines by name. A new engine is one file and one entry here.

An engine's file has a function ``start(factory, options)`` that returns an :class:`Engine`; it is
imported when the engine is asked for, so that its packages need not be there otherwise.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Final

from escalade.engines.base import Engine, EngineOptions, Factory, InProcessEngine
from escalade.errors import InputError, nearest


@dataclass(frozen=True)
class EngineEntry:
    """Where an engine is, and what it is for."""

    module: str
    """The module whose ``start(factory, options)`` makes it."""
    summary: str
    """What ``--help`` says of it."""


ENGINES: Final[dict[str, EngineEntry]] = {
    "local": EngineEntry("escalade.engines.processes", "processes of this machine"),
    "threads": EngineEntry("escalade.engines.threads", "threads of this process"),
    "ray": EngineEntry("escalade.engines.ray.entry", "a cluster"),
}


def start_engine(name: str, factory: Factory, workers: int, **options: Any) -> Engine:
    """Start the engine called ``name`` with work that ``factory`` makes.

    Args:
        name: a key of :data:`ENGINES`.
        factory: makes the work of one worker; it travels to the workers by value (cloudpickle).
        workers: how many; with 0 everything runs in this process, whatever the name.
        **options: the other fields of :class:`EngineOptions`.

    Raises:
        InputError: there is no such engine, it misses a package, or it cannot keep a step timeout.
    """
    if name not in ENGINES:
        raise InputError(f"engine {name!r} must be one of {', '.join(ENGINES)}{nearest(name, ENGINES)}")
    if workers == 0:
        if options.get("step_timeout") is not None:
            raise InputError("`step_timeout` needs worker processes: `workers=0` has none")
        return InProcessEngine(factory)
    start = importlib.import_module(ENGINES[name].module).start
    engine: Engine = start(factory, EngineOptions(workers, **options))
    return engine
