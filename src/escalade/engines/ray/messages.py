"""What the engine and its cluster say to each other. Plain values, with no Ray in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol

from escalade.engines.results import Batch

Handle = Any
"""What a cluster calls a worker by; it can be hashed."""


@dataclass(frozen=True)
class Node:
    """A machine of the cluster."""

    name: str
    """Its address, for people."""
    room: int
    """Workers that fit on it while nobody else uses it."""


@dataclass(frozen=True)
class Ready:
    """A worker's work is built."""

    worker: Handle
    node: str
    """Id of the node that it runs on."""
    info: dict[str, Any]
    """What the work says of itself; see :meth:`escalade.engines.base.Work.info`."""
    versions: dict[str, str]
    """Of the packages that can change a last bit, where the worker runs."""


@dataclass(frozen=True)
class Reply:
    """Results of a chunk, in batches; None when its job was over before it was done."""

    worker: Handle
    chunk: int
    results: Sequence[Batch] | None
    busy_seconds: float
    """Seconds that the worker had something to do, since it began."""


@dataclass(frozen=True)
class Lost:
    """A worker is gone, or what it sent is."""

    worker: Handle
    reason: str


@dataclass(frozen=True)
class Failed:
    """The work raised. ``kind`` is the class of an error of Escalade's, None for any other."""

    worker: Handle
    kind: type[Exception] | None
    text: str
    trace: str
    node: str = ""
    missing: str = ""
    """The module that could not be imported, if that is why."""


Event = Ready | Reply | Lost | Failed


class Cluster(Protocol):
    """Where workers run. Calls return at once; what comes of them is in ``events``."""

    events: SimpleQueue[Event]
    versions: dict[str, str]
    """Of this process's packages; every worker's must be the same."""
    dashboard: str | None
    """Address of a page that shows the cluster."""

    def put(self, job: Any) -> Any:
        """Make a job available to all workers; what :meth:`send` takes."""
        ...

    def start_worker(self, avoid: Sequence[str]) -> Handle:
        """Ask for a worker, on any node but those of the ids in ``avoid``."""
        ...

    def send(self, worker: Handle, chunk: int, number: int, job: Any, items: Sequence[int]) -> None:
        """Give a worker items of job ``number`` to run."""
        ...

    def end_worker(self, worker: Handle) -> None:
        """End a worker, whatever it does. Nothing more is heard of it."""
        ...

    def nodes(self) -> dict[str, Node]:
        """The nodes that are alive, by id."""
        ...

    def close(self) -> None:
        """End what :meth:`start_worker` began, and the connection."""
        ...
