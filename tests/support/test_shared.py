"""A setting changed by several threads is set by the first and restored by the last."""

import threading
from contextlib import contextmanager

import torch

from escalade.support.exact import one_thread
from escalade.support.shared import SharedContext


def test_the_first_thread_enters_and_the_last_thread_leaves():
    seen = []

    @contextmanager
    def change():
        seen.append("entered")
        yield
        seen.append("left")

    shared, inside, leave = SharedContext(change), threading.Event(), threading.Event()

    def stay():
        with shared():
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=stay)
    with shared():
        thread.start()
        inside.wait(30)
    assert seen == ["entered"]
    leave.set()
    thread.join()
    assert seen == ["entered", "left"]
    with shared():
        pass
    assert seen == ["entered", "left"] * 2


def test_nested_one_thread_blocks_change_nothing():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_thread():
            with one_thread():
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
