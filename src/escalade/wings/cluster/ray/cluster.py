"""Workers of a Ray cluster as actors.

Ray's API is used only here, in ``actor`` and in ``connection``. Ray restarts a worker if its process or its
node is lost, and retries ``ready``. Chunks do not use Ray's retries, which wait for the same actor: a
different worker takes them at once, while a lost worker may have to wait for a node to join.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from escalade.engines.base import EngineOptions, Factory
from escalade.engines.messages import dumped
from escalade.wings.cluster.ray.actor import RayWorker, all_versions
from escalade.wings.cluster.ray.connection import Connection
from escalade.wings.cluster.ray.messages import Event, Failed, Handle, Lost, Node, Ready, Reply

_BY_NAME = ("CPU", "GPU", "memory")  # resources with their own Ray options
_TOLERANCE = 1e-9  # for rounding errors in shares of a resource
_RESTARTS = 20  # of one actor, before a new one replaces it
_CALLS = 100  # concurrent calls of an actor, including those of dropped jobs


class RayCluster:
    """Workers as Ray actors, placed by Ray wherever there is room.

    Methods return at once. Their outcomes arrive in ``events``.

    Args:
        factory: builds the work of one worker. Its arrays, such as the noise table, are stored once per node
            in Ray's object store and shared by all workers of the node.
        options: options of the engine. Only ``worker_resources``, ``workers``, ``elastic`` and
            ``step_timeout`` are used here.

    Raises:
        InputError: Ray is missing, the cluster cannot be joined, or the work cannot be pickled.
    """

    def __init__(self, factory: Factory, options: EngineOptions) -> None:
        self._resources = {"CPU": 1.0} | {name: float(n) for name, n in options.worker_resources.items()}
        room = {name: n * options.workers for name, n in self._resources.items()}
        if options.elastic:  # as many workers as this machine has cores
            del room["CPU"]
        arrays: list[pickle.PickleBuffer] = []
        pickled = dumped(factory, protocol=5, buffer_callback=arrays.append)  # can fail, so before the start
        self._connection = Connection(None, room)
        try:
            self._prepare(pickled, arrays, options.step_timeout)
        except BaseException:  # including Ctrl-C: the next run would join a cluster that is left behind
            self._connection.close()
            raise

    def _prepare(self, pickled: bytes, arrays: list[pickle.PickleBuffer], step_timeout: float | None) -> None:
        """Store the factory in the object store, and define the actor."""
        self.events: SimpleQueue[Event] = SimpleQueue()
        self._ray = ray = self._connection.ray
        cpus = self._resources["CPU"]
        self._actor = ray.remote(RayWorker)
        self._options = {
            "num_cpus": cpus,
            "num_gpus": self._resources.get("GPU"),
            "memory": self._resources.get("memory"),
            "resources": {name: n for name, n in self._resources.items() if name not in _BY_NAME},
            "max_restarts": _RESTARTS,
            "max_concurrency": _CALLS,
        }
        # In a list, so that Ray passes the reference and the worker fetches the object when needed.
        self._made_of = [ray.put((pickled, arrays, int(cpus), step_timeout, all_versions()))]
        self._calls: dict[Handle, set[Any]] = {}  # references to calls; without one, Ray drops the result

    def put(self, job: Any) -> Any:
        """Make a job available to all workers, and return its reference for :meth:`send`."""
        return [self._ray.put(job)]

    def start_worker(self, avoid: Sequence[str]) -> Handle:
        """Start a worker on any node, except those whose ids are in ``avoid``.

        :class:`Ready` follows when there is room. If the worker is lost, it is restarted on any node.
        """
        labels = {"ray.io/node-id": f"!in({','.join(avoid)})"} if avoid else None
        worker = self._actor.options(**self._options, label_selector=labels).remote()
        self._calls[worker] = set()
        self.await_ready(worker)
        return worker

    def await_ready(self, worker: Handle) -> None:
        """Request an event when a worker is :class:`Ready`, for the first time or again."""
        called = worker.ready.options(max_task_retries=-1).remote(self._made_of)
        self._call(worker, 0, called, lambda result: Ready(worker, *result))

    def send(self, worker: Handle, chunk: int, number: int, job: Any, items: Sequence[int]) -> None:
        """Send items of job ``number`` to a worker."""

        def event(result: Any) -> Event:
            return Reply(worker, chunk, *result) if result else Lost(worker, chunk, "it was restarted")

        self._call(worker, chunk, worker.run.remote(number, job, items), event)

    def end_worker(self, worker: Handle) -> None:
        """Kill a worker."""
        self._calls.pop(worker, None)
        self._ray.kill(worker)

    def nodes(self) -> dict[str, Node]:
        """Return the nodes that are alive, by id."""
        return {
            node["NodeID"]: Node(node["NodeManagerAddress"], self._room(node["Resources"]))
            for node in self._ray.nodes()
            if node["Alive"]
        }

    def close(self) -> None:
        """Kill all workers and close the connection."""
        for worker in list(self._calls):
            self.end_worker(worker)
        self._connection.close()

    def _room(self, resources: dict[str, float]) -> int:
        return int(
            min(resources.get(name, 0.0) / n + _TOLERANCE for name, n in self._resources.items() if n > 0)
        )

    def _call(self, worker: Handle, chunk: int, ref: Any, event: Callable[[Any], Event]) -> None:
        """Put the outcome of a call into the queue of events, from a thread of Ray."""
        calls, errors = self._calls[worker], self._ray.exceptions
        calls.add(ref)

        def done(future: Future[Any]) -> None:
            calls.discard(ref)
            problem = future.exception()
            if problem is None:
                self.events.put(event(future.result()))
            elif isinstance(problem, errors.RayTaskError):
                self.events.put(Failed(worker, problem.cause))
            else:
                reason = str(problem).strip().partition(os.linesep)[0]
                self.events.put(Lost(worker, chunk, reason, isinstance(problem, errors.ActorDiedError)))

        ref.future().add_done_callback(done)
