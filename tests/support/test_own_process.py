"""A process that exits directly does everything the interpreter does, except its teardown."""

import subprocess
import sys

import pytest

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


COLLECTS = """
import gc
pythons = gc.get_threshold()
from escalade.support.own_process import claim, collect_garbage
collect_garbage()
assert gc.get_freeze_count() == 0  # somebody else's process
claim()
assert gc.get_threshold() != pythons
if {engine}:
    from escalade.engines import start_engine
    try:
        start_engine("none", None, 1)
    except Exception as problem:
        assert "none" in str(problem)
else:
    collect_garbage()
assert gc.get_threshold() == pythons
frozen = gc.get_freeze_count()
assert frozen > 1000
collect_garbage()
assert gc.get_freeze_count() <= frozen  # what a run has left is none of the modules
"""


@pytest.mark.parametrize("engine", [False, True])
def test_garbage_collection_is_restored_after_imports(engine):
    subprocess.run([sys.executable, "-c", COLLECTS.format(engine=engine)], check=True)
