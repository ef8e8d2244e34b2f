"""The same digest with the engine local and with the engine ray on 1, 2 and 3 nodes, on both backends.

    python benchmarks/ray_bits.py [perturbation=low-rank:1]
    python benchmarks/ray_bits.py behavior=observation:0,1 novelty=nsra:k=3,patience=1,centers=3

Options use the names and values of a config file. The nodes are Ray's own multi-node test cluster, on
this machine; its head has no room for workers. Prints a Markdown table, and exits with 1 if a digest
differs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from settings import option

ENVIRONMENTS = ["CartPole-v1", "HalfCheetah-v5"]
BACKENDS = ["gymnasium", "envpool"]
OPTIONS = {
    "preset": None,
    "strategy": "openai-es",
    "hidden": (64, 64),
    "seed": 5,
    "population": 32,
    "generations": 5,
    "eval_episodes": 3,
}
VARIABLES = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


def digest(folder: Path, **options: Any) -> str:
    """Return ``params_sha256`` of a run."""
    from escalade import train

    return str(train(run_dir=folder, verbose=False, **OPTIONS, **options).summary["params_sha256"])


def main() -> None:
    os.environ |= VARIABLES
    OPTIONS.update(map(option, sys.argv[1:]))
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=NODE | {"num_cpus": 0})
    ray.init(address=cluster.address, namespace="escalade", log_to_driver=False, logging_level="error")
    cases = [(env, backend) for env in ENVIRONMENTS for backend in BACKENDS]
    with tempfile.TemporaryDirectory() as temporary:
        found = {
            case: [digest(Path(temporary) / "-".join(case), env=case[0], backend=case[1], workers=0)]
            for case in cases
        }
        for nodes in (1, 2, 3):
            cluster.add_node(**NODE)
            for env, backend in cases:
                folder = Path(temporary) / f"{env}-{backend}-{nodes}"
                more = {"engine": "ray", "workers": nodes}
                found[env, backend].append(digest(folder, env=env, backend=backend, **more))
    ray.shutdown()
    cluster.shutdown()
    print("| environment | backend | local | 1 node | 2 nodes | 3 nodes | |")
    print("| --- " * 7 + "|")
    for (env, backend), digests in found.items():
        short = " | ".join(digest[:12] for digest in digests)
        word = "same" if len(set(digests)) == 1 else "DIFFERENT"
        print(f"| {env} | {backend} | {short} | {word} |")
    sys.exit(any(len(set(digests)) > 1 for digests in found.values()))


if __name__ == "__main__":
    main()
