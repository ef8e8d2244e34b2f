"""How many workers there should be, and on which nodes."""

from __future__ import annotations

import time
from collections.abc import Callable

from escalade.engines.ray.messages import Cluster, Handle, Node

_LOOK_SECONDS = 1.0
_SILENCE_SECONDS = 10.0  # without a worker, before the user is told
_REMIND_SECONDS = 60.0


class Fleet:
    """Keeps as many workers asked for as the cluster has room for, while nodes come and go.

    Args:
        cluster: where workers are started.
        workers: how many; None for as many as there is room for. More than there is room for are
            asked for too: a cluster that can grow sees that it should.
    """

    def __init__(self, cluster: Cluster, workers: int | None) -> None:
        self._cluster, self._wanted = cluster, workers
        self._where: dict[Handle, str | None] = {}  # node id; None until it runs
        self._nodes: dict[str, Node] = {}
        self._names: dict[str, str] = {}
        self._avoided: set[str] = set()
        self._looked = self._said = float("-inf")
        self._worked = time.monotonic()

    @property
    def asked(self) -> int:
        """Workers that should be there."""
        if self._wanted is not None:
            return self._wanted
        return max(1, self._room)

    @property
    def expected(self) -> int:
        """Workers that should be there and have a place, so that they are here soon."""
        return min(self.asked, self._room)

    @property
    def _room(self) -> int:
        return sum(node.room for key, node in self._nodes.items() if key not in self._avoided)

    @property
    def usable(self) -> bool:
        """Whether any node may be used."""
        return any(key not in self._avoided for key in self._nodes)

    def name(self, node: str) -> str:
        """A node's address, also after it left."""
        return self._names.get(node, node[:8] or "of the cluster")

    def knows(self, worker: Handle) -> bool:
        """Whether a worker was started and is not given up."""
        return worker in self._where

    def settled(self, worker: Handle, node: str) -> None:
        """A worker runs, on ``node``."""
        self._where[worker] = node

    def avoid(self, node: str) -> None:
        """Start no workers on a node any more."""
        self._avoided.add(node)

    def lost(self, worker: Handle) -> bool | None:
        """Forget a worker; whether its node is alive. None for one that was forgotten already."""
        if worker not in self._where:
            return None
        node = self._where.pop(worker)
        if node is None:
            return True
        self._looked = float("-inf")  # it may not be alone: the next look is now
        return node in self._cluster.nodes()

    def fill(self) -> None:
        """Ask for the workers that are missing; take back requests that nobody can meet any more."""
        for _ in range(self.asked - len(self._where)):
            self._where[self._cluster.start_worker(sorted(self._avoided))] = None
        surplus = len(self._where) - self.asked
        for worker in [w for w, node in self._where.items() if node is None][: max(0, surplus)]:
            del self._where[worker]
            self._cluster.end_worker(worker)

    def look(self, say: Callable[[str], None]) -> list[Handle]:
        """See, once a second, which nodes there are; the workers whose node is gone."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return []
        first, self._looked = not self._names, now
        before, self._nodes = self._nodes, self._cluster.nodes()
        self._names |= {key: node.name for key, node in self._nodes.items()}
        if not first:
            for key in before.keys() - self._nodes.keys():
                say(f"node {self.name(key)} left the cluster: {_counted(self._nodes)} there")
            for key in self._nodes.keys() - before.keys():
                say(f"node {self.name(key)} joined the cluster: {_counted(self._nodes)} there")
        self.fill()
        return [
            worker for worker, node in self._where.items() if node is not None and node not in self._nodes
        ]

    def explain(self, ready: int, left: int, say: Callable[[str], None]) -> None:
        """Tell the user why nothing happens, when there is no worker."""
        now = time.monotonic()
        if ready or not left:
            self._worked = now
        elif now - self._worked > _SILENCE_SECONDS and now - self._said > _REMIND_SECONDS:
            self._said = now
            room = sum(node.room for node in self._nodes.values())
            why = "no node has room for a worker" if not room else "no worker has started yet"
            say(
                f"waiting for the cluster: {why} ({_counted(self._nodes)} there); "
                "the run goes on by itself when one has, and Ctrl-C saves it"
            )


def _counted(nodes: dict[str, Node]) -> str:
    return "1 node is" if len(nodes) == 1 else f"{len(nodes)} nodes are"
