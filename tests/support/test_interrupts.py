"""A signal raises where nothing is half done: never while the process's output goes elsewhere."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from tests.commands import DEADLINE

from escalade.envs.quiet import quiet
from escalade.support.interrupts import LEADER, Interrupts, end_with_leader


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(10**5):  # the handler runs between two steps of this thread
        pass


def test_a_held_block_ends_before_a_first_signal_raises():
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
        pass  # nothing is left of it


def test_the_output_is_back_when_a_signal_comes_while_it_is_silenced():
    before = [os.fstat(fd).st_ino for fd in (1, 2)]
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt), interrupts.allowed(), quiet():
        interrupt()
    assert [os.fstat(fd).st_ino for fd in (1, 2)] == before


def test_a_request_outlasts_the_block_within_another_that_it_came_in():
    with Interrupts() as outer:
        with Interrupts(), Interrupts():
            interrupt()
        assert outer.requested
        with Interrupts() as later, pytest.raises(KeyboardInterrupt), later.allowed():
            pass
    with Interrupts() as another:
        assert not another.requested


def test_other_threads_hold_nothing():
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


# What a command does that another one leads: it says when it is at work, and how it ended.
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


def test_a_process_is_interrupted_once_its_leader_is_gone():
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
        assert process.stdout.readline() == "None\n"  # what it starts itself is not led by anybody
    finally:
        os.close(lifeline)  # as the system does when the leader is killed
    assert process.communicate(timeout=DEADLINE)[0] == "saved\n"
    assert process.returncode == 0


def test_a_process_without_a_leader_waits_for_none(monkeypatch):
    monkeypatch.delenv(LEADER, raising=False)
    before = threading.active_count()
    end_with_leader()
    assert threading.active_count() == before


def test_handlers_that_python_did_not_set_are_left_alone(monkeypatch):
    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    set_to = []
    monkeypatch.setattr(signal, "signal", lambda *given: set_to.append(given))
    with Interrupts():
        pass
    assert set_to == []
