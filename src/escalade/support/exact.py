"""Settings under which results are bit-identical."""

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
_threads = 1  # torch's number of threads before the first thread entered
_depth = threading.local()  # per thread, whether it is inside a block


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch and numpy on one thread, as the number of threads can change the last bit of a sum.

    torch stores its number of threads per thread, and a default for new threads. Several threads may be
    inside at once; each leaves with the number that the first one found. A nested block has no effect.
    """
    if getattr(_depth, "blocks", 0):
        yield
        return
    global _inside, _threads  # noqa: PLW0603 - torch's setting is global as well
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
    """Set the default for new threads without changing the number of this one."""
    thread = threading.Thread(target=torch.set_num_threads, args=(1,))
    thread.start()
    thread.join()


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Run torch on one thread, as the number of threads can change the last bit of a sum.

    It wraps every call, because without workers the process is the user's own. It takes a quarter of a
    microsecond; :func:`one_thread`, which limits numpy too, takes half a millisecond.
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
    """Make the CPU torch's default device, as policies run there."""
    # A device context slows down every call; an empty tensor, made in half a microsecond, shows the default.
    return nullcontext() if torch.empty(0).is_cpu else torch.device("cpu")
