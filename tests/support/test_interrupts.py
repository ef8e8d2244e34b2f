"""A signal raises only at safe points: never while the process's output is redirected."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext

import pytest
from tests.commands import DEADLINE

from escalade.envs.process import quiet
from escalade.support.interrupts import LEADER, Interrupts


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(10**5):  # the handler runs between two bytecodes of this thread
        pass


def test_a_signal_raises_only_after_the_protected_block():
    reached = []

    def work():
        with Interrupts.held():
            with Interrupts.held():
                interrupt()
            reached.append("the end of the block")
        reached.append("what follows")

    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt), interrupts.allowed():
        work()
    assert reached == ["the end of the block"]
    with Interrupts() as interrupts, interrupts.allowed(), Interrupts.held():
        pass  # the request is forgotten


def test_output_is_restored_if_a_signal_arrives_while_it_is_silenced():
    before = [os.fstat(fd).st_ino for fd in (1, 2)]
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt), interrupts.allowed(), quiet():
        interrupt()
    assert [os.fstat(fd).st_ino for fd in (1, 2)] == before


def test_a_request_in_an_inner_block_is_visible_in_the_outer_block():
    with Interrupts() as outer:
        with Interrupts(), Interrupts():
            interrupt()
        assert outer.requested
        with Interrupts() as later, pytest.raises(KeyboardInterrupt), later.allowed():
            pass
    with Interrupts() as another:
        assert not another.requested


def test_other_threads_do_not_defer_signals():
    held, leave = threading.Event(), threading.Event()

    def hold():
        with Interrupts.held():
            held.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(30)
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt), interrupts.allowed():
        interrupt()
    leave.set()
    thread.join()


# A command led by a different process: it prints when it has started, and how it ended.
LED = """
import os, signal
from escalade.support.interrupts import LEADER, Interrupts, end_with_leader
end_with_leader()
with Interrupts() as interrupts:
    print(os.environ.get(LEADER), flush=True)
    try:
        with interrupts.allowed():
            while True:
                signal.pause()
    except KeyboardInterrupt:
        print("saved", flush=True)
"""


def test_a_process_is_interrupted_if_its_leader_dies():
    led, lifeline = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", LED],
        env=os.environ | {LEADER: str(led)},
        pass_fds=(led,),
        stdout=subprocess.PIPE,
        text=True,
    )
    os.close(led)
    try:
        assert process.stdout.readline() == "None\n"  # its own children have no leader
    finally:
        os.close(lifeline)  # as the system does if the leader is killed
    assert process.communicate(timeout=DEADLINE)[0] == "saved\n"
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.filterwarnings("ignore:.*use of fork")  # a warning of later Pythons in processes with threads
def test_a_forked_child_has_the_original_signal_handlers(number, allowed):
    with Interrupts(), Interrupts() as interrupts, interrupts.allowed() if allowed else nullcontext():
        for _ in range(20):  # the signal may arrive before the child runs any code of its own
            child = multiprocessing.get_context("fork").Process(target=signal.pause)
            child.start()
            os.kill(child.pid, number)
            child.join(DEADLINE)
            assert child.exitcode == -number
        assert not interrupts.requested
        handlers = {signal.getsignal(one).__func__ for one in (signal.SIGINT, number)}
        assert handlers == {Interrupts._handle}
    assert number not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
