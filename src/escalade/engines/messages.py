"""A job on its way to worker processes: large arrays travel as descriptors of shared memory.

Imports no numpy, as the server that workers are forked from imports this.
"""

from __future__ import annotations

import mmap
import pickle
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

from escalade.errors import InputError, one_line
from escalade.support.shared_memory import LARGE, SharedMemory


def dumped(value: Any, **how: Any) -> bytes:
    """An object as cloudpickle writes it; ``how`` are keywords of ``cloudpickle.dumps``.

    Raises:
        InputError: it holds something that cannot be sent to another process.
    """
    import cloudpickle

    try:
        data: bytes = cloudpickle.dumps(value, **how)
    except Exception as problem:
        raise InputError(
            f"the work cannot be sent to worker processes ({one_line(problem)}): "
            "use `workers=0` or `engine=threads`"
        ) from problem
    return data


class JobMessage:
    """A job, pickled once for all workers; large arrays are copied only where they are not shared yet."""

    def __init__(self, job: Any) -> None:
        self._large: list[SharedMemory] = []
        # Not multiprocessing's own pickler: a tensor that it pickles can be unpickled by one worker only. A
        # script's classes, of noise of its own say, go by value.
        how = {"protocol": pickle.HIGHEST_PROTOCOL, "buffer_callback": self._stays_inside}
        self._pickled = dumped(("job", job), **how)

    def send(self, messages: Connection) -> None:
        """Send it to one worker.

        Raises:
            OSError: the worker is dead.
        """
        if self._large:
            messages.send(("memory", [len(memory) for memory in self._large]))
            for memory in self._large:
                reduction.send_handle(messages, memory.fd, None)
        messages.send_bytes(self._pickled)

    def _stays_inside(self, buffer: pickle.PickleBuffer) -> bool:
        with buffer.raw() as numbers:
            if numbers.nbytes < LARGE:
                return True
        import numpy as np

        from escalade.support.large import memory_of, shared_copy

        array = memoryview(buffer).obj
        memory = memory_of(array)
        if memory is None:
            copied = shared_copy(np.frombuffer(buffer.raw(), np.uint8))
            memory = memory_of(copied)
            assert memory is not None
        self._large.append(memory)
        return False


def received_job(messages: Connection, lengths: list[int]) -> Any:
    """The message that follows ``("memory", lengths)``, whose large arrays lie in memory shared with others.

    Who writes to them gets pages of its own.
    """
    found = [SharedMemory.mapped(reduction.recv_handle(messages), size, mmap.ACCESS_COPY) for size in lengths]
    # This reads what the parent process, which started this one, has just written.
    return pickle.loads(messages.recv_bytes(), buffers=found)  # noqa: S301
