"""Nodes of a cluster, and the number of workers to run on them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from escalade.support.numbers import counted
from escalade.wings.cluster.ray.messages import Node

if TYPE_CHECKING:
    from escalade.wings.cluster.ray.cluster import RayCluster

_LOOK_SECONDS = 1.0
_SILENCE_SECONDS = 10.0  # without a worker, before a note explains it
_REMIND_SECONDS = 60.0


class Fleet:
    """Tracks the nodes of a cluster.

    Args:
        cluster: the cluster.
        workers: number of workers to request, or None for as many as there is room for. Requesting more than
            there is room for makes an autoscaling cluster grow.
    """

    def __init__(self, cluster: RayCluster, workers: int | None) -> None:
        self._cluster, self._wanted = cluster, workers
        self._nodes: dict[str, Node] = {}
        self._names: dict[str, str] = {}
        self._looked = self._explained = float("-inf")
        self._worked = time.monotonic()
        self.avoided: set[str] = set()
        """Ids of nodes that are not used."""

    @property
    def requested(self) -> int:
        """Number of workers to request."""
        return max(1, self._room) if self._wanted is None else self._wanted

    @property
    def expected(self) -> int:
        """Number of requested workers that have room, and should be ready soon."""
        return min(self.requested, self._room)

    @property
    def _room(self) -> int:
        return sum(node.room for key, node in self._nodes.items() if key not in self.avoided)

    @property
    def usable(self) -> bool:
        """True if any node may be used."""
        return any(key not in self.avoided for key in self._nodes)

    def name(self, node: str) -> str:
        """Return the address of a node, even after it left."""
        return self._names.get(node, node[:8] or "of the cluster")

    def look(self, report: Callable[[str], None]) -> None:
        """Update the nodes, at most once per second, and report changes."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        first, self._looked = not self._names, now
        before, self._nodes = self._nodes, self._cluster.nodes()
        self._names |= {key: node.name for key, node in self._nodes.items()}
        for what, keys in [
            ("left", before.keys() - self._nodes.keys()),
            ("joined", self._nodes.keys() - before.keys()),
        ]:
            for key in () if first else keys:
                report(f"node {self.name(key)} {what} the cluster, which now has {self._counted()}")

    def explain(self, idle: bool, report: Callable[[str], None]) -> None:
        """Explain a wait in a note. ``idle`` is True if there are items to run and no workers."""
        now = time.monotonic()
        if not idle:
            self._worked = now
        elif now - self._worked > _SILENCE_SECONDS and now - self._explained > _REMIND_SECONDS:
            self._explained = now
            room = any(node.room for node in self._nodes.values())
            why = "no worker has started yet" if room else "no node has room for a worker"
            report(
                f"waiting for the cluster: {why} ({self._counted()}); the run continues as soon as possible, "
                "and Ctrl-C saves it"
            )

    def _counted(self) -> str:
        return counted(len(self._nodes), "node")
