"""A removed temporary folder does not disturb a run; limits of threads and file sizes are one line."""

import errno
import os
import subprocess
import sys

import pytest

from escalade import InputError
from escalade.engines import worker
from escalade.support.shared_memory import anonymous_file

SCRIPT = """
import os, shutil, signal
from multiprocessing.util import get_temp_dir
from escalade.engines import start_engine
from tests.engines.test_resources import Double

if __name__ == "__main__":
    engine = start_engine("local", Double, 2)
    assert engine.run(None, 6).in_order() == [0, 2, 4, 6, 8, 10]
    folder = get_temp_dir()
    shutil.rmtree(folder)
    for pid in engine.pids:
        os.kill(pid, signal.SIGKILL)
    assert engine.run(None, 6).in_order() == [0, 2, 4, 6, 8, 10]
    assert get_temp_dir() != folder
    shutil.rmtree(get_temp_dir())
    engine.close()
    print("done")
"""


class Double:
    def info(self):
        return {"slots": 2}

    def begin(self, job):
        pass

    def run(self, feed):
        while items := feed.take(2, wait=True):
            for item in items:
                feed.put(item, 2 * item)

    def close(self):
        pass


def test_workers_are_replaced_and_the_end_is_quiet_without_the_temporary_folder(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, env=_here(), check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


def _here():
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def test_a_worker_that_cannot_start_a_thread_raises_one_line(monkeypatch):
    def full(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", full)
    with pytest.raises(InputError, match=r"can't start new thread.* lower `workers`"):
        worker._watch(None)


def test_shared_memory_beyond_the_file_size_limit_raises_one_line(monkeypatch):
    def refuse(fd, length):
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr("os.ftruncate", refuse)
    with pytest.raises(InputError, match=r"64 MiB of shared memory .* \(ulimit -f\)"):
        anonymous_file(64 * 2**20)
