"""The nodes of a cluster, and how many workers there should be on them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from escalade.wings.cluster.ray.messages import Node

if TYPE_CHECKING:
    from escalade.wings.cluster.ray.cluster import RayCluster

_LOOK_SECONDS = 1.0
_SILENCE_SECONDS = 10.0  # without a worker, before the user is told
_REMIND_SECONDS = 60.0


class Fleet:
    """Watches nodes come and go.

    Args:
        cluster: whose nodes.
        workers: how many to ask for; None for as many as there is room for. More than there is room for
            are asked for too: a cluster that can grow sees that it should.
    """

    def __init__(self, cluster: RayCluster, workers: int | None) -> None:
        self._cluster, self._wanted = cluster, workers
        self._nodes: dict[str, Node] = {}
        self._names: dict[str, str] = {}
        self._looked = self._said = float("-inf")
        self._worked = time.monotonic()
        self.avoided: set[str] = set()
        """Ids of nodes to start no workers on."""

    @property
    def asked(self) -> int:
        """Workers that should be there."""
        return max(1, self._room) if self._wanted is None else self._wanted

    @property
    def expected(self) -> int:
        """Workers that should be there and have a place, so that they are here soon."""
        return min(self.asked, self._room)

    @property
    def _room(self) -> int:
        return sum(node.room for key, node in self._nodes.items() if key not in self.avoided)

    @property
    def usable(self) -> bool:
        """True where any node may be used."""
        return any(key not in self.avoided for key in self._nodes)

    def name(self, node: str) -> str:
        """A node's address, also after it left."""
        return self._names.get(node, node[:8] or "of the cluster")

    def look(self, say: Callable[[str], None]) -> None:
        """See, once a second, which nodes there are."""
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
                say(f"node {self.name(key)} {what} the cluster: {self._counted()} there")

    def explain(self, idle: bool, say: Callable[[str], None]) -> None:
        """Tell the user why nothing happens, when there is something to do and no worker (``idle``)."""
        now = time.monotonic()
        if not idle:
            self._worked = now
        elif now - self._worked > _SILENCE_SECONDS and now - self._said > _REMIND_SECONDS:
            self._said = now
            room = any(node.room for node in self._nodes.values())
            why = "no worker has started yet" if room else "no node has room for a worker"
            say(
                f"waiting for the cluster: {why} ({self._counted()} there); "
                "the run goes on by itself when one has, and Ctrl-C saves it"
            )

    def _counted(self) -> str:
        return "1 node is" if len(self._nodes) == 1 else f"{len(self._nodes)} nodes are"
