"""Locks: one run per folder at a time, across objects, threads and processes."""

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys

import pytest
from tests.commands import DEADLINE

from escalade import InputError, StorageFailure
from escalade.storage.lock import FolderLock
from escalade.storage.run_folder import RunFolder

HOLD = """
import sys, time
from pathlib import Path
from escalade.storage.lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
time.sleep(3600)
"""


def test_a_lock_is_exclusive_and_can_be_acquired_again(tmp_path):
    first, second = FolderLock(tmp_path), FolderLock(tmp_path)
    first.acquire()
    first.acquire()
    with pytest.raises(InputError, match=f"in use by process {os.getpid()} on {socket.gethostname()}: wait"):
        second.acquire()
    first.release()
    second.acquire()
    second.release()


def test_a_killed_process_holds_no_lock(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    lock = FolderLock(tmp_path)
    with pytest.raises(InputError, match=f"in use by process {holder.pid} on"):
        lock.acquire()
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    lock.acquire()
    lock.release()


def test_a_new_folder_is_locked_until_it_is_released(tmp_path):
    folder = RunFolder.create(tmp_path / "run", "subject", "label")
    with pytest.raises(InputError, match="in use by"):
        RunFolder.create(tmp_path / "run", "subject", "label")
    folder.write_config('env = "X"\n')
    folder.lock.release()
    with pytest.raises(InputError, match="holds a run already"):
        RunFolder.create(tmp_path / "run", "subject", "label")
    with RunFolder.open(tmp_path / "run").locked(), pytest.raises(InputError, match="in use by"):
        folder.lock.acquire()


FORK_AND_DIE = """
import os, sys
from pathlib import Path
from escalade.storage.lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
lock.acquire()
if os.fork() == 0:
    os.write(1, b"helper\\n")
    sys.stdin.read()  # until the test lets it go
    lock.release()
    os._exit(0)
os._exit(9)
"""


def test_a_helper_that_the_environment_forked_holds_no_lock(tmp_path):
    command = [sys.executable, "-c", FORK_AND_DIE, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.wait(DEADLINE) == 9
        assert process.stdout.readline() == "helper\n"  # which lives on
        lock = FolderLock(tmp_path)
        assert lock.status()[0] == "killed"
        lock.acquire()
        process.stdin.close()
        assert process.stdout.read() == ""  # the helper has ended, and released what it does not hold
        assert lock.status()[0] == "held"
        lock.release()


def test_a_lock_that_a_full_disk_refuses_leaves_no_file(tmp_path, monkeypatch):
    def full(*given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    lock = FolderLock(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(StorageFailure, match="could not be written"):
            lock.acquire()
    assert lock.status() == ("free", "")
    lock.acquire()
    lock.release()


def test_a_late_release_does_not_affect_the_next_holder(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    first, second = FolderLock(folder), FolderLock(folder)
    first.acquire()
    shutil.rmtree(folder)  # a run that failed in its first generation leaves nothing
    folder.mkdir()
    second.acquire()
    first.release()
    assert second.status()[0] == "held"
    with pytest.raises(InputError, match="in use"):
        FolderLock(folder).acquire()
