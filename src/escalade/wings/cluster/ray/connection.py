"""The way into a cluster, and one line for each way in which it can fail."""

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
"""Ray's namespace for all actors with a name: it keeps them apart from those of others on a cluster."""

_REACH_SECONDS = 5.0
_STORE_BYTES = 512 * 2**20  # of a cluster that is started here: a job is one centre and one normaliser


class Connection:
    """A connection to a cluster; one that was there before is used, and left as it is.

    Args:
        address: ``auto`` (the cluster that this machine belongs to), ``HOST:PORT`` of its head, or None:
            what the variable RAY_ADDRESS says, else a cluster of this machine alone, started now.
        room: what a cluster started now has, such as ``{"CPU": 2}``; CPUs and GPUs of this machine where
            it does not say them.

    Raises:
        InputError: Ray is missing, nothing is to be reached there, or it runs other versions.
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
                how |= _asked_for(room)
                # Without this, Ray joins a cluster that was started on this machine, even if it ended badly.
                how["address"] = "local"
            _join(ray, address or "", how)

    def close(self) -> None:
        """Leave the cluster, if this connection was made here."""
        if self._ours:
            self.ray.shutdown()


def _asked_for(room: Mapping[str, float]) -> dict[str, Any]:
    """Arguments of ``ray.init`` for a cluster with this room; GPUs and memory are those that Ray finds."""
    whole = {name: math.ceil(n) for name, n in room.items() if name not in ("GPU", "memory")}  # as Ray asks
    cpus = {"num_cpus": whole.pop("CPU")} if "CPU" in whole else {}
    return {**cpus, "resources": whole}


def _import_ray() -> Any:
    # Ray asks for leave to report how it is used; nothing leaves this machine unless its user wants it.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise InputError(f"engine ray needs a package; {install('ray')}") from None


def _check(address: str) -> None:
    """Find out in seconds what Ray would try for minutes: whether somebody listens there."""
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
            f"cluster address {address} cannot be reached ({problem.strerror or problem}): is a head node "
            "started there with 'ray start', and its port open?"
        ) from None


def _join(ray: Any, address: str, how: dict[str, Any]) -> None:
    """Connect."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(namespace=NAMESPACE, log_to_driver=False, logging_level="error", **how)
    except ConnectionError:
        raise InputError(
            f"cluster address {address} finds no cluster here: start a head node with 'ray start', "
            "or give HOST:PORT of its head node"
        ) from None
    except RuntimeError as problem:  # such as other versions, which Ray names
        raise InputError(f"cluster address {address} cannot be joined: {problem}") from None
    finally:
        with suppress(ValueError):  # not the main thread: no handler was set
            if before is not None:  # else it is of the program that Python runs in, and cannot be put back
                signal.signal(signal.SIGTERM, before)  # Ray's would end the process before the run is saved
