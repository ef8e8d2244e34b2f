"""Settings that hold while numbers are computed that must come out the same, to the last bit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from escalade.support.shared import SharedContext

_blas = SharedContext(lambda: threadpool_limits(1, user_api="blas"))
_lock = threading.Lock()
_inside = 0
_threads = 1  # that torch used before the first thread came in
_depth = threading.local()  # how deep this thread is in blocks within blocks


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch and numpy compute on one thread: how many share a sum can change its last bit.

    torch keeps its number for each thread and a default for new ones; several threads may be here at
    once, and each leaves with the number that the first found. A block within a block changes nothing.
    """
    if getattr(_depth, "blocks", 0):
        yield
        return
    global _inside, _threads  # noqa: PLW0603 - torch's numbers are global as well
    with _lock:
        if _inside == 0:
            _threads = torch.get_num_threads()
        _inside += 1
    torch.set_num_threads(1)
    _depth.blocks = 1
    try:
        with _blas():
            yield
    finally:
        _depth.blocks = 0
        with _lock:
            _inside -= 1
            torch.set_num_threads(_threads)
            if _inside:
                _keep_default_at_one()


def _keep_default_at_one() -> None:
    """Set the default of threads to come, without touching the number of this one."""
    thread = threading.Thread(target=torch.set_num_threads, args=(1,))
    thread.start()
    thread.join()


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let torch compute on one thread: how many share a sum can change its last bit.

    Set around every call, because without workers the process is the user's own. This takes a
    quarter of a microsecond; :func:`one_thread`, which limits numpy too, takes half a millisecond.
    """
    threads = torch.get_num_threads()
    if threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def cpu_by_default() -> AbstractContextManager[Any]:
    """Have torch make tensors on the CPU, where policies are run, whatever its default device is."""
    # A context of a device slows every call down; a tensor without numbers is made in half a microsecond.
    return nullcontext() if torch.empty(0).is_cpu else torch.device("cpu")
