"""A signal raises where nothing is half done: never while the process's output goes elsewhere."""

import os
import signal
import threading

import pytest

from escalade.envs.quiet import quiet
from escalade.support.interrupts import Interrupts


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
