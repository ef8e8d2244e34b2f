"""Connect to a Ray cluster, with a clear error for each way to fail."""

from __future__ import annotations

import importlib
import math
import os
import re
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from escalade.errors import InputError
from escalade.support.imports import install

NAMESPACE = "escalade"
"""Ray namespace of all named actors, which separates them from other applications on a cluster."""

_REACH_SECONDS = 5.0
_STORE_BYTES = 512 * 2**20  # of a local cluster, whose jobs contain only a center and a normalizer


class Connection:
    """Connection to a cluster.

    An existing connection of this process is used and not closed.

    Args:
        address: ``auto`` (the cluster of this machine), ``HOST:PORT`` of the head node, or None for the
            variable RAY_ADDRESS. If that is not set, a local cluster is started.
        room: resources of a local cluster, such as ``{"CPU": 2}``. CPUs default to those of this machine;
            GPUs and memory are those that Ray finds.

    Raises:
        InputError: Ray is missing, the address cannot be reached, or the cluster has different versions.
    """

    def __init__(self, address: str | None, room: Mapping[str, float]) -> None:
        self.ray = ray = _import_ray()
        self._ours = not ray.is_initialized()
        if self._ours:
            address = address or os.environ.get("RAY_ADDRESS")
            if address:
                _check(address)
                how: dict[str, Any] = {"address": address}
            else:
                how = {"object_store_memory": _STORE_BYTES, "include_dashboard": False}
                how |= _room_arguments(room)
                # Otherwise Ray joins any cluster that was started on this machine, even one that crashed.
                how["address"] = "local"
            _join(ray, address or "", how)

    def close(self) -> None:
        """Disconnect, unless the connection existed before."""
        if self._ours:
            self.ray.shutdown()


def _room_arguments(room: Mapping[str, float]) -> dict[str, Any]:
    """Return arguments of ``ray.init`` for these resources; Ray detects GPUs and memory by itself."""
    # Ray requires whole numbers.
    whole = {name: math.ceil(n) for name, n in room.items() if name not in ("GPU", "memory")}
    cpus = {"num_cpus": whole.pop("CPU")} if "CPU" in whole else {}
    return {**cpus, "resources": whole}


def _import_ray() -> Any:
    # Opt out of Ray's usage reports unless the user has set this variable.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise InputError(f"engine ray needs ray; {install('ray')}") from None


def _check(address: str) -> None:
    """Raise InputError if the address cannot be reached. Ray itself would retry for minutes."""
    if address == "auto":
        return
    found = re.fullmatch(r"\[?([^\s/\]]+?)\]?:(\d{1,5})", address)
    if found is None or int(found[2]) > 65535:
        raise InputError(
            f"cluster address {address!r} must be auto or HOST:PORT of the head node, such as 10.0.0.1:6379 "
            "(in RAY_ADDRESS; from outside the cluster: ray job submit)"
        )
    try:
        socket.create_connection((found[1], int(found[2])), _REACH_SECONDS).close()
    except OSError as problem:
        raise InputError(
            f"cluster address {address} cannot be reached ({problem.strerror or problem}); start a head node "
            "there with 'ray start', and open its port"
        ) from None


def _join(ray: Any, address: str, how: dict[str, Any]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(namespace=NAMESPACE, log_to_driver=False, logging_level="error", **how)
    except ConnectionError:
        raise InputError(
            f"cluster address {address}: this machine has no cluster; start a head node with 'ray start', or "
            "use HOST:PORT of a head node"
        ) from None
    except RuntimeError as problem:  # such as different versions, which Ray names
        raise InputError(f"cluster address {address} cannot be joined: {problem}") from None
    finally:
        with suppress(ValueError):  # not the main thread: no handler was set
            if before is not None:  # None: set by a program that embeds Python, and cannot be restored
                signal.signal(signal.SIGTERM, before)  # Ray's handler would exit before the run is saved
