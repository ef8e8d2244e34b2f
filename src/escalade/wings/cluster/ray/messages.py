"""The messages of the engine and its cluster: plain values, with no Ray in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from escalade.engines.results import Results
from escalade.errors import InputError

Handle = Any
"""The name by which a cluster calls a worker; it can be hashed."""


class UnfitNode(InputError):
    """A node cannot run the work as this machine would: the sentence that follows the node's name."""

    def __init__(self, text: str, node: str = "") -> None:
        super().__init__(text)
        self.node = node
        """Its id."""


@dataclass(frozen=True)
class Node:
    """A machine of the cluster."""

    name: str
    """Its address, for people."""
    room: int
    """Workers that fit on it while nobody else uses it."""


@dataclass(frozen=True)
class Ready:
    """A worker's work is built, for the first time or after its cluster has started it again."""

    worker: Handle
    node: str
    """Id of the node that it runs on."""
    info: dict[str, Any]
    """The facts that the work says of itself; see :meth:`escalade.engines.base.Work.info`."""


@dataclass(frozen=True)
class Reply:
    """Results of a chunk; None when its job was over before it was done."""

    worker: Handle
    chunk: int
    node: str
    results: Results | None
    busy_seconds: float
    """Seconds that the worker had something to do, since its last reply."""
    notes: Sequence[str] = ()
    """Lines of it for a person, since its last reply."""


@dataclass(frozen=True)
class Lost:
    """A worker is gone, or what it sent is: a chunk, or (0) word that it is ready."""

    worker: Handle
    chunk: int
    reason: str
    for_good: bool = False
    """True where the cluster will not start it again."""


@dataclass(frozen=True)
class Failed:
    """The work raised."""

    worker: Handle
    problem: Exception


Event = Ready | Reply | Lost | Failed
