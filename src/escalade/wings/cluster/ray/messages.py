"""Messages between the engine and its cluster, independent of Ray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from escalade.engines.results import Results
from escalade.errors import InputError

Handle = Any
"""Hashable handle of a worker."""


class UnfitNode(InputError):
    """A node cannot run the work as this machine would. The message continues "node NAME ..."."""

    def __init__(self, text: str, node: str = "") -> None:
        super().__init__(text)
        self.node = node
        """Id of the node."""


@dataclass(frozen=True)
class Node:
    """A machine of the cluster."""

    name: str
    """Address of the node."""
    room: int
    """Number of workers that fit on an otherwise idle node."""


@dataclass(frozen=True)
class Ready:
    """A worker has built its work, for the first time or after a restart."""

    worker: Handle
    node: str
    """Id of its node."""
    info: dict[str, Any]
    """Facts about the work, see :meth:`escalade.engines.base.Work.info`."""


@dataclass(frozen=True)
class Reply:
    """Results of a chunk, or None if its job was dropped first."""

    worker: Handle
    chunk: int
    node: str
    results: Results | None
    busy_seconds: float
    """Busy seconds of the worker since its last reply."""
    notes: Sequence[str] = ()
    """Notes of the worker since its last reply."""


@dataclass(frozen=True)
class Lost:
    """A worker or its message was lost: the results of ``chunk``, or :class:`Ready` if ``chunk`` is 0."""

    worker: Handle
    chunk: int
    reason: str
    for_good: bool = False
    """True if the cluster will not restart it."""


@dataclass(frozen=True)
class Failed:
    """The work raised an exception."""

    worker: Handle
    problem: Exception


Event = Ready | Reply | Lost | Failed
