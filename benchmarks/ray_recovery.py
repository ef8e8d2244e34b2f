"""Delay of a job on a Ray cluster after the loss of a worker process or a node.

    python benchmarks/ray_recovery.py

Two nodes of one worker each, on this machine, and a job of 40 items of 50 milliseconds: one worker, or its
node, is killed 0.3 seconds after the job began. Prints the seconds until the job is done, without and with a
loss, and the seconds until both workers work again. A lost node is replaced as soon as the job is done.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

VARIABLES = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
ITEMS, ITEM_SECONDS, KILL_SECONDS = 40, 0.05, 0.3


class Sleeps:
    """Work whose items sleep, and return their process and node."""

    def info(self) -> dict[str, Any]:
        return {"slots": 1}

    def begin(self, job: Any) -> None:
        """Every job is the same."""

    def run(self, feed: Any) -> None:
        import ray

        node = ray.get_runtime_context().get_node_id()
        while items := feed.take(1, wait=True):
            time.sleep(ITEM_SECONDS)
            feed.put(items[0], [items[0] ** 2, os.getpid(), node])

    def close(self) -> None:
        """Do nothing."""


def main() -> None:
    os.environ |= VARIABLES
    import ray
    from ray.cluster_utils import Cluster

    from escalade.engines import start_engine

    cluster = Cluster(initialize_head=True, head_node_args=NODE | {"num_cpus": 0})
    nodes = {node.node_id: node for node in (cluster.add_node(**NODE) for _ in range(2))}
    ray.init(address=cluster.address, namespace="escalade", log_to_driver=False, logging_level="error")
    engine = start_engine("ray", Sleeps, 2, elastic=True)

    def workers() -> dict[int, str]:
        """Return process ids and nodes of both workers, once both work."""
        while True:
            found = {pid: node for _, pid, node in engine.run("job", 12).in_order()}
            if len(found) == 2:
                return found

    def timed(kill: Callable[[], Any]) -> float:
        killer = threading.Timer(KILL_SECONDS, kill)
        began = time.monotonic()
        killer.start()
        results = engine.run("job", ITEMS).in_order()
        took = time.monotonic() - began
        killer.join()
        assert [result[0] for result in results] == [item**2 for item in range(ITEMS)]
        return round(took, 2)

    workers()
    found: dict[str, list[float]] = {"no loss": [timed(lambda: None) for _ in range(3)]}
    for kind in ["worker"] * 4 + ["node"] * 2:
        (pid, node), *_ = workers().items()
        began = time.monotonic()
        if kind == "worker":
            took = timed(lambda pid=pid: os.kill(pid, signal.SIGKILL))  # type: ignore[misc]
        else:
            lost = nodes.pop(node)
            took = timed(lambda lost=lost: cluster.remove_node(lost, allow_graceful=False))  # type: ignore[misc]
            fresh = cluster.add_node(wait=False, **NODE)
            nodes[fresh.node_id] = fresh
        found.setdefault(kind, []).append(took)
        workers()
        found.setdefault(f"{kind}, both again", []).append(round(time.monotonic() - began, 2))
    engine.close()
    ray.shutdown()
    cluster.shutdown()
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
