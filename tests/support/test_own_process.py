"""A process that leaves directly does what the interpreter would have done, but for its teardown."""

import subprocess
import sys

SCRIPT = """
import atexit, sys, threading, time
from escalade.support.own_process import end_process

class Costly:
    def __del__(self):
        print("taken apart")

kept = Costly()
atexit.register(print, "exit function")
if "thread" in sys.argv:
    threading.Thread(target=lambda: (time.sleep(0.2), print("thread done"))).start()
sys.stdout.write("no newline, ")
end_process(7)
"""


def left(*arguments):
    run = [sys.executable, "-c", SCRIPT, *arguments]
    result = subprocess.run(run, capture_output=True, text=True, check=False)
    assert result.stderr == ""
    assert result.returncode == 7
    return result.stdout


def test_exit_functions_run_and_output_is_written():
    assert left() == "no newline, exit function\n"


def test_a_thread_is_waited_for():
    assert "thread done" in left("thread")


IMPORT = """
import gc
from escalade.support.own_process import claim
claim()
before = gc.get_stats()[0]["collections"]
import torch
print(gc.get_stats()[0]["collections"] - before)
"""


def test_garbage_is_hardly_looked_for_while_torch_is_imported():
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 30  # 350 as Python does it
