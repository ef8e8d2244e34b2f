"""The cluster as Ray shows it. All calls of Ray's are here, in ``actor`` and in ``connection``.

Ray starts a worker again where its process or its node is lost, and keeps asking it whether it is ready. A
chunk is not left to Ray's retries, which wait for the same actor: another worker takes it at once, where the
lost one has no room until a node joins.
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

_BY_NAME = ("CPU", "GPU", "memory")  # resources that Ray's options have names for
_WHOLE = 1e-9  # what a share of a resource may be off by
_RESTARTS = 20  # of one actor, before another is started in its place
_CALLS = 100  # that an actor may have in hand: chunks, and those of a job that was dropped


class RayCluster:
    """Workers as Ray actors, placed by Ray wherever there is room.

    Calls return at once; what comes of them is in ``events``.

    Args:
        factory: makes the work of one worker. The arrays in it, such as the noise table, are in Ray's object
            store once a node, and every worker of the node reads them there.
        options: ``worker_resources`` and ``step_timeout`` are read here.

    Raises:
        InputError: Ray is missing, the cluster cannot be joined, or the work cannot be sent there.
    """

    def __init__(self, factory: Factory, options: EngineOptions) -> None:
        self._resources = {"CPU": 1.0} | {name: float(n) for name, n in options.worker_resources.items()}
        room = {name: n * options.workers for name, n in self._resources.items()}
        if options.elastic:  # as many workers as this machine has cores for
            del room["CPU"]
        arrays: list[pickle.PickleBuffer] = []
        pickled = dumped(factory, protocol=5, buffer_callback=arrays.append)  # before anything is started
        self._connection = Connection(None, room)
        try:
            self._prepare(pickled, arrays, options.step_timeout)
        except BaseException:  # Ctrl-C too: a cluster that stays would be joined by the next run
            self._connection.close()
            raise

    def _prepare(self, pickled: bytes, arrays: list[pickle.PickleBuffer], step_timeout: float | None) -> None:
        """Put what workers are made of where they fetch it."""
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
        # In a list, so that a worker fetches it when it needs it, as with a job.
        self._made_of = [ray.put((pickled, arrays, int(cpus), step_timeout, all_versions()))]
        self._calls: dict[Handle, set[Any]] = {}  # a call whose reference is dropped is never answered

    def put(self, job: Any) -> Any:
        """Make a job available to all workers; what :meth:`send` takes."""
        return [self._ray.put(job)]

    def start_worker(self, avoid: Sequence[str]) -> Handle:
        """Ask for a worker, on any node but those of the ids in ``avoid``.

        It becomes :class:`Ready` where there is room, and is started again, anywhere, when it is lost.
        """
        labels = {"ray.io/node-id": f"!in({','.join(avoid)})"} if avoid else None
        worker = self._actor.options(**self._options, label_selector=labels).remote()
        self._calls[worker] = set()
        self.await_ready(worker)
        return worker

    def await_ready(self, worker: Handle) -> None:
        """Ask a worker that was lost to say when it is :class:`Ready` again."""
        called = worker.ready.options(max_task_retries=-1).remote(self._made_of)
        self._call(worker, 0, called, lambda answer: Ready(worker, *answer))

    def send(self, worker: Handle, chunk: int, number: int, job: Any, items: Sequence[int]) -> None:
        """Give a worker items of job ``number`` to run."""

        def event(answer: Any) -> Event:
            return Reply(worker, chunk, *answer) if answer else Lost(worker, chunk, "it was started again")

        self._call(worker, chunk, worker.run.remote(number, job, items), event)

    def end_worker(self, worker: Handle) -> None:
        """End a worker, whatever it does."""
        self._calls.pop(worker, None)
        self._ray.kill(worker)

    def nodes(self) -> dict[str, Node]:
        """The nodes that are alive, by id."""
        return {
            node["NodeID"]: Node(node["NodeManagerAddress"], self._room(node["Resources"]))
            for node in self._ray.nodes()
            if node["Alive"]
        }

    def close(self) -> None:
        """End what :meth:`start_worker` began, and the connection."""
        for worker in list(self._calls):
            self.end_worker(worker)
        self._connection.close()

    def _room(self, resources: dict[str, float]) -> int:
        return int(min(resources.get(name, 0.0) / n + _WHOLE for name, n in self._resources.items() if n > 0))

    def _call(self, worker: Handle, chunk: int, ref: Any, event: Callable[[Any], Event]) -> None:
        """Put what comes of a call into the queue of events, from a thread of Ray's."""
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
