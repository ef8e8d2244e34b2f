"""The cluster as Ray shows it. All calls of Ray's are here, in ``actor`` and in ``connection``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from escalade.engines.base import EngineOptions, Factory
from escalade.engines.ray.connection import Connection
from escalade.engines.ray.messages import Event, Failed, Handle, Lost, Node, Ready, Reply
from escalade.engines.ray.versions import versions

_WHOLE = 1e-9  # what a share of a resource may be off by


class RayCluster:
    """Workers as Ray actors, placed by Ray wherever there is room.

    Args:
        factory: makes the work of one worker.
        options: ``address``, ``worker_resources`` and ``step_timeout`` are read here.

    Raises:
        InputError: Ray is missing, or the cluster cannot be joined.
    """

    def __init__(self, factory: Factory, options: EngineOptions) -> None:
        self._connection = Connection(options.address, None if options.elastic else options.workers)
        import cloudpickle

        from escalade.engines.ray.actor import Worker

        self.events: SimpleQueue[Event] = SimpleQueue()
        self.versions = versions()
        self.dashboard = self._connection.dashboard
        self._ray = ray = self._connection.ray
        self._resources = {"CPU": 1.0} | {name: float(n) for name, n in options.worker_resources.items()}
        self._factory = ray.put(cloudpickle.dumps(factory))
        cpus = self._resources["CPU"]
        self._actor = ray.remote(Worker)
        self._options = {
            "num_cpus": cpus,
            "num_gpus": self._resources.get("GPU"),
            "resources": {name: n for name, n in self._resources.items() if name not in ("CPU", "GPU")},
            "max_restarts": 0,  # its engine replaces it, on whatever node there is then
            "max_task_retries": 0,
            "max_concurrency": 100,
        }
        self._made_of = (self._factory, max(1, int(cpus)), options.step_timeout)
        self._refs: dict[Handle, set[Any]] = {}  # a call whose reference is dropped is never answered

    def put(self, job: Any) -> Any:
        # In a list, so that a worker fetches it when it needs it, and once.
        return [self._ray.put(job)]

    def start_worker(self, avoid: Sequence[str]) -> Handle:
        labels = {"ray.io/node-id": f"!in({','.join(avoid)})"} if avoid else None
        options = self._options | {"label_selector": labels}
        worker = self._actor.options(**options).remote(*self._made_of)
        self._refs[worker] = set()
        self._call(worker, worker.ready.remote(), lambda answer: _ready(worker, answer))
        self._call(worker, worker.watch.remote(), lambda answer: Lost(worker, "it ended"))
        return worker

    def send(self, worker: Handle, chunk: int, number: int, job: Any, items: Sequence[int]) -> None:
        called = worker.run.remote(number, job, items)
        self._call(worker, called, lambda answer: _reply(worker, chunk, answer))

    def end_worker(self, worker: Handle) -> None:
        self._refs.pop(worker, None)
        self._ray.kill(worker)

    def nodes(self) -> dict[str, Node]:
        return {
            node["NodeID"]: Node(node["NodeManagerAddress"], self._room(node["Resources"]))
            for node in self._ray.nodes()
            if node["Alive"]
        }

    def close(self) -> None:
        for worker in list(self._refs):
            self.end_worker(worker)
        self._connection.close()

    def _room(self, resources: dict[str, float]) -> int:
        return int(min(resources.get(name, 0.0) / n + _WHOLE for name, n in self._resources.items() if n > 0))

    def _call(self, worker: Handle, ref: Any, event: Callable[[Any], Event]) -> None:
        """Put what comes of a call into the queue of events, from a thread of Ray's."""
        refs = self._refs[worker]
        refs.add(ref)

        def done(future: Future[Any]) -> None:
            refs.discard(ref)
            problem = future.exception()
            lost = problem is not None
            self.events.put(Lost(worker, _first_line(problem)) if lost else event(future.result()))

        ref.future().add_done_callback(done)


def _ready(worker: Handle, answer: tuple[Any, ...]) -> Event:
    node, kind, *content = answer
    if kind == "failed":
        return _failed(worker, content, node)
    return Ready(worker, node, *content)


def _reply(worker: Handle, chunk: int, answer: tuple[Any, ...]) -> Event:
    kind, *content = answer
    return _failed(worker, content) if kind == "failed" else Reply(worker, chunk, *content)


def _failed(worker: Handle, content: list[Any], node: str = "") -> Failed:
    kind, text, trace, missing = content
    return Failed(worker, kind, text, trace, node, missing)


def _first_line(problem: BaseException | None) -> str:
    return str(problem).strip().partition(os.linesep)[0]
