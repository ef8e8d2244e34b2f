"""Engines by name.

A new engine is one file and one entry here. An entry's home is called with a factory and
:class:`EngineOptions` and returns an :class:`Engine`. Its file is imported only when the engine is used, so
its packages are optional.
"""

from __future__ import annotations

from typing import Any, Final

from escalade.engines.base import Engine, EngineOptions, Factory, InProcessEngine
from escalade.errors import InputError
from escalade.support.own_process import collect_garbage
from escalade.support.registry import Entry, named

ENGINES: Final[dict[str, Entry]] = {
    "local": Entry("processes of this machine", "escalade.engines.processes:ProcessEngine"),
    "threads": Entry("threads of this process", "escalade.engines.threads:start"),
    "ray": Entry(
        "a Ray cluster",
        "escalade.wings.cluster.ray.engine:start",
        packages=("ray",),
        extra="ray",
        options=frozenset({"worker_resources"}),
    ),
}


def start_engine(name: str, factory: Factory, workers: int, **options: Any) -> Engine:
    """Start the engine called ``name``.

    Args:
        name: a key of :data:`ENGINES`.
        factory: makes the work of one worker. It is sent to the workers by value (cloudpickle).
        workers: number of workers. With 0, everything runs in this process and ``name`` has no effect.
        **options: the other fields of :class:`EngineOptions`.

    Raises:
        InputError: the engine is unknown, its package is missing, or it does not support a step timeout.
    """
    collect_garbage()
    entry = named("engine", name, ENGINES)
    if workers == 0:
        if options.get("step_timeout") is not None:
            raise InputError("`step_timeout` needs worker processes; set `workers` to 1 or more")
        return InProcessEngine(factory)
    engine: Engine = entry.load()(factory, EngineOptions(workers, **options))
    return engine
