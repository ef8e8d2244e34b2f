"""Sends jobs to worker processes; large arrays are sent as descriptors of shared memory.

Does not import numpy, because the server that workers are forked from imports this module.
"""

from __future__ import annotations

import mmap
import pickle
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

from escalade.errors import InputError, one_line
from escalade.support.shared_memory import LARGE, SharedMemory


def dumped(value: Any, **options: Any) -> bytes:
    """Pickle an object with cloudpickle; ``options`` are keywords of ``cloudpickle.dumps``.

    Raises:
        InputError: part of it cannot be sent to another process.
    """
    import cloudpickle

    try:
        data: bytes = cloudpickle.dumps(value, **options)
    except Exception as problem:
        raise InputError(
            f"the work cannot be sent to worker processes ({one_line(problem)}): "
            "use `workers=0` or `engine=threads`"
        ) from problem
    return data


class JobMessage:
    """A job, pickled once for all workers. Large arrays are copied only if they are not shared yet."""

    def __init__(self, job: Any) -> None:
        self._large: list[SharedMemory] = []
        # Not multiprocessing's pickler: a tensor that it pickles can be unpickled by one worker only. Classes
        # of the user's script, such as a noise source, are pickled by value.
        options = {"protocol": pickle.HIGHEST_PROTOCOL, "buffer_callback": self._is_small}
        self._pickled = dumped(("job", job), **options)

    def send(self, messages: Connection) -> None:
        """Send the job to one worker.

        Raises:
            OSError: the worker is dead.
        """
        if self._large:
            messages.send(("memory", [len(memory) for memory in self._large]))
            for memory in self._large:
                reduction.send_handle(messages, memory.fd, None)
        messages.send_bytes(self._pickled)

    def _is_small(self, buffer: pickle.PickleBuffer) -> bool:
        """Return True if an array is pickled with the job. Otherwise, add it to the shared arrays."""
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
    """Receive the message after ``("memory", lengths)``, whose large arrays are in shared memory.

    The memory is copied on write.
    """
    found = [SharedMemory.mapped(reduction.recv_handle(messages), size, mmap.ACCESS_COPY) for size in lengths]
    # Trusted: the parent process, which started this one, has just written it.
    return pickle.loads(messages.recv_bytes(), buffers=found)  # noqa: S301
