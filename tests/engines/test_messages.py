"""Jobs are sent to worker processes without copying large arrays."""

import os
import pickle
from dataclasses import dataclass
from multiprocessing import Pipe
from threading import Thread
from typing import Any

import numpy as np
import pytest

from escalade.engines.messages import JobMessage, received_job
from escalade.support.large import memory_of, shared_copy
from escalade.support.shared_memory import LARGE


@dataclass
class Job:
    center: Any
    again: Any = None


def arrived(job):
    ours, theirs = Pipe()
    message = JobMessage(job)
    sender = Thread(target=message.send, args=(ours,))  # the pipe holds less than a large message
    sender.start()
    kind, content = pickle.loads(theirs.recv_bytes())
    if kind == "memory":
        kind, content = received_job(theirs, content)
    sender.join()
    assert kind == "job"
    return message, content


@pytest.mark.parametrize("share", [shared_copy, np.copy])
def test_large_arrays_are_sent_in_shared_memory(share):
    values = share(np.arange(LARGE, dtype=np.float32).reshape(4, -1))
    message, job = arrived(Job(values, values))
    assert len(message._pickled) < 1000
    assert job.center is job.again
    np.testing.assert_array_equal(job.center, values)
    assert (message._large[0] is memory_of(values)) == (share is shared_copy)


def test_received_arrays_are_copied_on_write():
    values = shared_copy(np.zeros(LARGE, np.float32))
    _, job = arrived(Job(values))
    job.center[5] = 1.0
    assert values[5] == 0.0


def test_small_jobs_and_odd_arrays_are_pickled():
    turned = np.arange(LARGE, dtype=np.float32).reshape(-1, 2).T
    _, job = arrived(Job(np.arange(3), turned))
    assert job.center.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(job.again, turned)
    _, job = arrived(Job(np.arange(LARGE)[::2]))
    np.testing.assert_array_equal(job.center, np.arange(LARGE)[::2])


def test_no_descriptors_stay_open():
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        arrived(Job(np.zeros(LARGE, np.float32)))
    assert len(os.listdir("/dev/fd")) == before
